"""A call block's side in each task: rows in, calls made, responses recorded, rows out."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.jobs.blocks.calls.attempts import Attempts, Function, Outcome, Policy
from penstock.jobs.blocks.calls.journal import KEY, PAGE, Entry, Journal
from penstock.jobs.stream.task_context import TaskPlace
from penstock.jobs.stream.task_errors import in_a_task

if TYPE_CHECKING:
    import pyarrow as pa

FAILURE = "_failure"
CALL_KEY = "_call_key"
# Maximum time before received responses are recorded.
_LONGEST_WAIT_S = 1.0
_NO_KEY = "the idempotency key is null"


@dataclass(frozen=True)
class CallTask:
    """Sent to the Python workers.

    Args:
        name: of the calls.
        function: the called function.
        policy: how calls are made.
        fields: columns of the row that the function takes.
        answers: fields of a response.
        required: those that must not be null.
        ordered: whether rows keep their order.
    """

    name: str
    function: Function
    policy: Policy
    fields: tuple[str, ...]
    answers: pa.Schema
    required: tuple[str, ...]
    ordered: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows with the responses' fields and `FAILURE`, without the key."""
        with in_a_task():
            journal = Journal(TaskPlace.here(), self.name, self._page())
            with Attempts(self.function, self.policy) as attempts:
                yield from _Run(self, journal, attempts).rows(batches)

    def _page(self) -> pa.Schema:
        import pyarrow as pa

        return pa.schema([(KEY, pa.string()), ("reason", pa.string()), ("answer", self.struct())])

    def struct(self) -> pa.StructType:
        """A response's type."""
        import pyarrow as pa

        return pa.struct(list(self.answers))


@dataclass
class _Slice:
    """Rows that wait for their responses: the keys of the outstanding calls, by row."""

    rows: pa.RecordBatch
    keys: dict[int, str]
    left: list[int]


class _Run:
    def __init__(self, task: CallTask, journal: Journal, attempts: Attempts) -> None:
        self._task = task
        self._journal = journal
        self._attempts = attempts
        self._slices: deque[_Slice] = deque()
        self._decided: dict[str, Entry] = {}
        self._under_way: set[str] = set()

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        most = self._task.policy.capacity + PAGE
        for batch in batches:
            for start in range(0, batch.num_rows, PAGE):
                self._begin(batch.slice(start, PAGE))
                while len(self._under_way) > most:
                    self._settle(left_under_way=self._task.policy.capacity)
                yield from self._finished()
        while self._slices:
            self._settle(left_under_way=0)
            yield from self._finished()

    def _begin(self, rows: pa.RecordBatch) -> None:
        called = {index: key for index, key in enumerate(rows.column(CALL_KEY).to_pylist()) if key is not None}
        unknown = {key for key in called.values() if key not in self._decided and key not in self._under_way}
        self._decided.update(self._journal.find(unknown) if unknown else {})
        values = rows.select(list(self._task.fields)).to_pylist()
        fresh: dict[str, dict[str, Any]] = {}
        for index, key in called.items():
            if key not in self._decided and key not in self._under_way:
                fresh.setdefault(key, values[index])
        self._under_way |= fresh.keys()
        self._attempts.submit(list(fresh.items()))
        self._slices.append(_Slice(rows, called, list(range(rows.num_rows))))

    def _settle(self, left_under_way: int) -> None:
        """Waits for responses, up to a page of them, and records them."""
        entries: dict[str, Entry] = {}
        until: float | None = None
        while len(entries) < PAGE and len(self._under_way) - len(entries) > left_under_way:
            ended = self._attempts.next(None if until is None else max(0.0, until - time.monotonic()))
            if ended is None:
                break
            until = until or time.monotonic() + _LONGEST_WAIT_S
            key, outcome = ended
            entries[key] = self._entry(outcome)
        if entries:
            self._decided.update(self._journal.append(entries))
            self._under_way -= entries.keys()

    def _entry(self, outcome: Outcome) -> Entry:
        """What is recorded: the response if it fits the result's fields, otherwise the reason."""
        if outcome.reason is not None:
            return {"reason": outcome.reason, "answer": None}
        reason = self._misfit(outcome.answer)
        return {"reason": reason, "answer": outcome.answer if reason is None else None}

    def _misfit(self, answer: Any) -> str | None:
        import pyarrow as pa

        if not isinstance(answer, Mapping):
            return f"the response must be a mapping, not {type(answer).__name__}"
        missing = [name for name in self._task.required if answer.get(name) is None]
        if missing:
            return f"the response lacks {', '.join(missing)}"
        try:
            pa.array([answer], type=self._task.struct())
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            return f"the response does not match the result schema: {error}"
        return None

    def _finished(self) -> Iterator[pa.RecordBatch]:
        """Rows that are complete."""
        for waiting in list(self._slices):
            ready = [index for index in waiting.left if index not in waiting.keys or waiting.keys[index] in self._decided]
            if len(ready) == len(waiting.left):
                self._slices.remove(waiting)
            elif self._task.ordered:
                return
            if ready:
                taken = set(ready)
                waiting.left = [index for index in waiting.left if index not in taken]
                yield self._out(waiting, ready)

    def _out(self, waiting: _Slice, indexes: list[int]) -> pa.RecordBatch:
        import pyarrow as pa

        rows = waiting.rows.take(pa.array(indexes, pa.int64()))
        entries = [self._decided[waiting.keys[index]] if index in waiting.keys else None for index in indexes]
        answers = pa.array([entry["answer"] if entry else None for entry in entries], type=self._task.struct())
        reasons = [entry["reason"] if entry else _NO_KEY for entry in entries]
        kept = [name for name in rows.schema.names if name != CALL_KEY]
        columns = [*(rows.column(name) for name in kept), *answers.flatten(), pa.array(reasons, pa.string())]
        return pa.RecordBatch.from_arrays(columns, names=[*kept, *self._task.answers.names, FAILURE])
