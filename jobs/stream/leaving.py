"""Rows that leave a stream for a side output, or that are only counted: taken out where they are found, by the task that finds them.

Two SQL functions of Penstock's classes for Spark's JVM (``jobs/jvm``, ``io.penstock.stream``) do it while the rows pass: one counts a row,
the other takes it out and returns false, for a filter. Every other row stays an ordinary row of Spark's: it has no mark, and nothing
after the filter knows of the others. ``docs/decisions/0022-side-outputs.md`` gives the rationale and the figures.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.jobs.stream.task_context import BATCH_TIME, WATERMARK

# The record of a row that leaves, as Spark DDL; the timestamp in epoch microseconds.
RECORD_TYPE = "struct<source: string, topic: string, partition: int, offset: bigint, timestamp: bigint, key: binary, value: binary>"
# A field added to the record: the number of the operator at which its row left.
OPERATOR = "operator"
_OPERATORS = itertools.count()
_COUNT, _LEAVE = "penstock_count_", "penstock_leave_"
# Micro-batches whose counts are kept while others run. One leaves some hundred bytes a task and operator, and up to 64 KiB of side rows.
_MOST_KEPT = 1_000
# Java's smallest long: the greatest event time of a split without one.
_NO_TIME_MS = -(2**63)
# Begins the name of an operator all of whose rows leave with one tag and are only counted. No source can have a name like it.
_TAGGED = ",tag "


@dataclass(frozen=True)
class TagCount:
    """How many rows of a micro-batch have a tag.

    Args:
        rows: all of them.
        unlocated: those that do not come from an offset of a topic; their ids need an ordinal.
        kept: whether the rows themselves are kept, because the tag has a side output.
    """

    rows: int = 0
    unlocated: int = 0
    kept: bool = False

    def __add__(self, other: TagCount) -> TagCount:
        return TagCount(self.rows + other.rows, self.unlocated + other.unlocated, self.kept or other.kept)


@dataclass(frozen=True)
class Passed:
    """What the tasks of a micro-batch have counted so far.

    Args:
        splits: name of an operator -> split -> its rows and their greatest event time in epoch milliseconds, or None.
        tags: name of an operator -> tag -> its rows; operators without a name are together under ``""``.
        rows: name of an operator -> its rows.
        of_others: like `tags`, of the operators whose rows another query writes and counts.
        staged: objects of the checkpoint with side-output rows.
    """

    splits: Mapping[str, Mapping[int, tuple[int, int | None]]] = field(default_factory=dict)
    tags: Mapping[str, Mapping[str, TagCount]] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    of_others: Mapping[str, Mapping[str, TagCount]] = field(default_factory=dict)
    staged: tuple[str, ...] = ()

    @classmethod
    def of(cls, session: SparkSession, run: str, batch: int, others: AbstractSet[int] = frozenset()) -> Passed:
        """Of one run of a micro-batch.

        Args:
            session: Spark's session.
            run: id of the query's run.
            batch: the micro-batch's number.
            others: numbers of the operators whose rows another query writes and counts.
        """
        return cls.summed(json.loads(_rows(session).counts(run, batch)), others)

    @classmethod
    def summed(cls, tasks: Sequence[Mapping[str, Any]], others: AbstractSet[int] = frozenset()) -> Passed:
        """Sums what tasks have counted, each with the fields of ``io.penstock.stream.Passed``."""
        splits: dict[str, dict[int, tuple[int, int | None]]] = {}
        tags: dict[str, dict[str, TagCount]] = {}
        of_others: dict[str, dict[str, TagCount]] = {}
        rows: Counter[str] = Counter()
        for operator, of_it in _by_operator(tasks).items():
            number, _, name = operator.partition("/")
            counted, counts = sum(task["rows"] for task in of_it), _tags(of_it)
            if name.startswith(_TAGGED):
                name, counts = "", {name.removeprefix(_TAGGED): TagCount(counted)}
            own = int(number) not in others
            rows[name] += counted if own else 0
            splits.setdefault(name, {}).update(_splits(of_it))
            of_name = (tags if own else of_others).setdefault(name, {})
            for tag, count in counts.items():
                of_name[tag] = of_name.get(tag, TagCount()) + count
        return cls(splits, tags, rows, of_others, tuple(task["staged"] for task in tasks if task["staged"]))

    def tagged(self, name: str, tag: str) -> int:
        """Rows with a tag at an operator, whoever writes and counts them."""
        return sum(tags.get(name, {}).get(tag, TagCount()).rows for tags in (self.tags, self.of_others))

    def by_tag(self) -> dict[str, TagCount]:
        """Tag -> its rows, of all operators."""
        sums: dict[str, TagCount] = {}
        for tags in self.tags.values():
            for tag, count in tags.items():
                sums[tag] = sums.get(tag, TagCount()) + count
        return sums


class Operator:
    """A place of a query at which rows are counted or leave.

    Args:
        session: Spark's session.
        name: in `Passed`; ``""`` for a place that only takes rows out.
    """

    def __init__(self, session: SparkSession, name: str = "") -> None:
        self._number = next(_OPERATORS)
        _rows(session).register(f"{self._number}/{name}")

    def counts(self, split: Column | None = None, time_ms: Column | None = None) -> Column:
        """Counts each row for which it is evaluated; true.

        Args:
            split: number of the row's split; None: without.
            time_ms: its event time in epoch milliseconds; None: without.
        """
        none, no_time = F.lit(None).cast("int"), F.lit(None).cast("bigint")
        return F.call_function(f"{_COUNT}{self._number}", none if split is None else split, no_time if time_ms is None else time_ms)

    def takes(self, tag: str | Column, reason: Column | None = None, record: Column | None = None) -> Column:
        """Takes out each row for which it is evaluated; false.

        Args:
            tag: of the row.
            reason: why, as text; None: without.
            record: of `RECORD_TYPE`; None: the row is only counted.
        """
        why = F.lit(None).cast("string") if reason is None else reason
        what = F.lit(None).cast(RECORD_TYPE) if record is None else record.withField(OPERATOR, F.lit(self._number))
        return F.call_function(f"{_LEAVE}{self._number}", F.lit(tag) if isinstance(tag, str) else tag, why, what)


def kept(frame: DataFrame, condition: Column, tag: str | Column, reason: Column | None = None, record: Column | None = None) -> DataFrame:
    """The rows for which a condition is true; the others leave.

    Args:
        frame: the rows.
        condition: never null.
        tag: of the others.
        reason: why they leave, as text.
        record: of `RECORD_TYPE`; None: they are only counted.
    """
    if isinstance(tag, str) and record is None:
        # Half the cost of a row that is taken out.
        leaves = ~Operator(frame.sparkSession, f"{_TAGGED}{tag}").counts()
    else:
        leaves = Operator(frame.sparkSession).takes(tag, reason, record)
    return frame.where(F.when(condition, F.lit(True)).otherwise(leaves))


def counted(frame: DataFrame, name: str) -> DataFrame:
    """The same rows, counted by an operator with a name."""
    return frame.where(Operator(frame.sparkSession, name).counts())


def lines(session: SparkSession, run: str, batch: int) -> DataFrame:
    """The side-output rows of one run of a micro-batch that are not in objects of the checkpoint: a column ``line`` of JSON."""
    return DataFrame(_rows(session).lines(run, batch), session)


def forget(session: SparkSession) -> None:
    """Forgets everything that has been counted in a session."""
    _rows(session).reset()


class Counting:
    """Forgets what micro-batches have counted once they are recorded, for all queries of a session together.

    Their counts are in one accumulator, which can only be emptied as a whole: so it is when none of them runs. A micro-batch counts rows
    only while it is in `micro_batch`. If some always run, those that are about to begin wait for them after `most` micro-batches.
    """

    def __init__(self, most: int = _MOST_KEPT) -> None:
        self._most = most
        self._running = self._kept = 0
        self._changed = threading.Condition()

    @contextmanager
    def micro_batch(self, session: SparkSession) -> Iterator[None]:
        """Context of a micro-batch, from before its first row is counted until it is recorded."""
        with self._changed:
            self._changed.wait_for(lambda: not self._running or self._kept < self._most)
            self._running += 1
        recorded = False
        try:
            yield
            recorded = True
        finally:
            with self._changed:
                self._running -= 1
                self._kept += 1
                if recorded and not self._running:
                    forget(session)
                    self._kept = 0
                self._changed.notify_all()


def current_watermark(session: SparkSession) -> tuple[Column, Column]:
    """The current watermark and up to where state may have been cleared, both in epoch milliseconds or null, as passed to
    `penstock.jobs.stream.task_context.set_watermark`.
    """
    return _time(session, "penstock_current_ms", WATERMARK), _time(session, "penstock_cleared_ms", WATERMARK, part=1)


def batch_time(session: SparkSession) -> Column:
    """The micro-batch's own timestamp in epoch milliseconds, as passed to `penstock.jobs.stream.task_context.set_batch_time`.

    Not ``current_timestamp()``: Spark writes that as a literal into the code that it generates for a stage, so that every micro-batch
    compiles its stages anew, and runs them interpreted until that is done.
    """
    return _time(session, "penstock_batch_ms", BATCH_TIME)


def _time(session: SparkSession, name: str, local_property: str, *, part: int = 0) -> Column:
    """A function that reads a part of a local property in each task."""
    _rows(session).registerTime(name, local_property, part)
    return F.call_function(name)


def _by_operator(tasks: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for task in tasks:
        found.setdefault(task["operator"], []).append(task)
    return dict(sorted(found.items()))


def _splits(tasks: Iterable[Mapping[str, Any]]) -> dict[int, tuple[int, int | None]]:
    """The splits that the tasks of an operator have read: their rows and their greatest event times."""
    rows: Counter[int] = Counter()
    greatest: dict[int, int] = {}
    for task in tasks:
        for split, seen in task["splits"].items():
            number = int(split)
            rows[number] += seen["rows"]
            greatest[number] = max(greatest.get(number, _NO_TIME_MS), seen["greatestMs"])
    return {number: (count, None if greatest[number] == _NO_TIME_MS else greatest[number]) for number, count in rows.items()}


def _tags(tasks: Iterable[Mapping[str, Any]]) -> dict[str, TagCount]:
    sums: dict[str, TagCount] = {}
    for task in tasks:
        for tag, count in task["tags"].items():
            sums[tag] = sums.get(tag, TagCount()) + TagCount(**count)
    return sums


def operator_of(function: str) -> int | None:
    """Number of the operator that a SQL function, by its name, belongs to; None for any other function."""
    number = function.removeprefix(_COUNT).removeprefix(_LEAVE)
    return int(number) if number != function else None


def takes_rows(function: str) -> bool:
    """Whether a SQL function, by its name, takes rows out."""
    return function.startswith(_LEAVE)


def is_own(function: str) -> bool:
    """Whether a SQL function, by its name, is one of these. They are non-deterministic only to Spark."""
    return function.startswith("penstock_")


def _rows(session: SparkSession) -> Any:
    return _class(session.sparkContext._jvm).of(session._jsparkSession)


@lru_cache(maxsize=1)
def _class(jvm: Any) -> Any:
    """Looked up once: py4j takes each part of the name for a class at first, and looks for it in every jar."""
    return jvm.io.penstock.stream.PassedRows
