"""The journal of external responses: what a micro-batch received, so that its replay receives the same.

A database or an endpoint may respond differently when asked again, and an update must not be made twice. So a task writes each response
to the checkpoint directory before it is used, ``penstock/calls/<name>/<micro-batch>/<task>/<page>.arrow``; a task that runs again (after
a crash, on another executor, or twice concurrently) finds it there. Everything downstream may then be exactly-once by replay.

A task's pages are a log: the next page is only written if it does not exist (``If-None-Match: *``). A task that finds it taken reads it
first, so that two concurrent attempts of a task continue with the same responses, also if they belong to two drivers. The journal of a
micro-batch is deleted once the next one has been written, because it is committed by then.

A task or a driver that was considered dead and goes on can repeat calls, with the same idempotency keys, and write pages of a
micro-batch that is committed. Nobody reads these pages, and the next deletion includes them. It never deletes pages of a later
micro-batch than its own.

What it does not hold: responses that had not been written when a task died, at most a second's worth. They are requested again, with the
same idempotency key.

Cost: a LIST per task and micro-batch, a PUT and later a DELETE for each page of up to a thousand responses; a LIST per micro-batch for
deletion. A task keeps its responses in memory.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.errors import BucketUnreachable
from penstock.jobs.storage.task_objects import task_objects
from penstock.jobs.stream.declaration import name_call
from penstock.jobs.stream.task_context import TaskPlace

if TYPE_CHECKING:
    import pyarrow as pa

KEY = "key"
# Maximum responses per page.
PAGE = 1_000
_READS_AT_A_TIME = 8
# Names of the journals of this process's jobs; without any there is nothing to delete.
_DECLARED: set[str] = set()

Entry = Mapping[str, Any]


def declare(name: str) -> None:
    """Registers that a job of this process keeps a journal of this name.

    Raises:
        ValueError: the app being built already uses the name; one call would read the other's responses.
    """
    name_call(name)
    _DECLARED.add(name)


class Journal:
    """A task's view of the journal.

    Args:
        place: of the task.
        name: of the journal, unique per block of a job.
        schema: of a page: the column ``key`` and its payload. Pages with another schema, written before an upgrade, are skipped.
    """

    def __init__(self, place: TaskPlace, name: str, schema: pa.Schema) -> None:
        self._objects, checkpoint = task_objects(place.checkpoint)
        self._folder = f"{checkpoint}/penstock/calls/{name}/{place.batch}/"
        self._own_folder = f"{self._folder}{place.partition:05d}/"
        self._schema = schema
        self._own: dict[str, Entry] = {}
        self._next = 0
        self._of_others: list[str] = []
        self._listed = False

    def find(self, keys: Iterable[str]) -> dict[str, Entry]:
        """The recorded entries for these keys.

        Raises:
            BucketUnreachable: JOB-009.
        """
        wanted = set(keys)
        self._list()
        if not wanted <= self._own.keys() and self._of_others:
            # The input is split differently than in the first attempt. A task's own log takes precedence if two have the same key.
            for page in self._read(self._of_others):
                self._add(page)
            self._of_others = []
        return {key: self._own[key] for key in wanted if key in self._own}

    def append(self, entries: Mapping[str, Entry]) -> dict[str, Entry]:
        """Records responses, unless there are others for their keys by now.

        Returns:
            The effective responses, for all the keys given.

        Raises:
            BucketUnreachable: JOB-009.
        """
        self._list()
        while fresh := {key: entry for key, entry in entries.items() if key not in self._own}:
            self._add(self._decide(fresh))
        return {key: self._own[key] for key in entries}

    def _list(self) -> None:
        if self._listed:
            return
        names = self._objects.names(self._folder)
        own = [name for name in names if name.startswith(self._own_folder)]
        self._of_others = [name for name in names if not name.startswith(self._own_folder)]
        for page in self._read(own):
            self._add(page)
        self._next = len(own)
        self._listed = True

    def _add(self, page: Mapping[str, Entry]) -> None:
        for key, entry in page.items():
            self._own.setdefault(key, entry)

    def _read(self, names: Iterable[str]) -> list[Mapping[str, Entry]]:
        with ThreadPoolExecutor(_READS_AT_A_TIME) as pool:
            return list(pool.map(self._page, names))

    def _page(self, name: str) -> Mapping[str, Entry]:
        import pyarrow as pa

        body = self._objects.read(name)
        if body is None:
            # This task is a late one that nobody waits for: the micro-batch is committed.
            raise BucketUnreachable(path=name, given="deleted meanwhile", need="a page of the call journal", fix="let the job go on")
        with pa.ipc.open_stream(io.BytesIO(body)) as reader:
            if not reader.schema.equals(self._schema):
                return {}
            return {row[KEY]: row for row in reader.read_all().to_pylist()}

    def _decide(self, entries: Mapping[str, Entry]) -> Mapping[str, Entry]:
        """The log's next page: these responses, as a reader finds them, or those of a faster attempt."""
        import pyarrow as pa

        rows = pa.RecordBatch.from_pylist([{**entry, KEY: key} for key, entry in entries.items()], schema=self._schema)
        name = f"{self._own_folder}{self._next:06d}.arrow"
        self._next += 1
        return {row[KEY]: row for row in rows.to_pylist()} if self._put(name, rows) else self._page(name)

    def _put(self, name: str, rows: pa.RecordBatch) -> bool:
        import pyarrow as pa

        body = io.BytesIO()
        with pa.ipc.new_stream(body, self._schema) as writer:
            writer.write_batch(rows)
        return self._objects.create(name, body.getvalue())


def clear(checkpoint: Checkpoint, keep: int) -> None:
    """Deletes the journals of the micro-batches before the one not committed yet.

    Those of later ones are kept: they belong to the driver that took over from this one, if it was considered dead.

    Raises:
        BucketUnreachable: JOB-009.
    """
    if not _DECLARED:
        return
    # name of the calls / micro-batch / page
    old = [name for name in checkpoint.names("calls/") if int(name.split("/")[1]) < keep]
    checkpoint.delete_all([f"calls/{name}" for name in old])
