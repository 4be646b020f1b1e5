"""Rows that leave a stream for a side output, or that are only counted: taken out where they are found, by the task that finds them.

Two SQL functions of Penstock's classes for Spark's JVM (``jobs/jvm``, ``io.penstock.stream``) do it while the rows pass: one counts a row,
the other takes it out and returns false, for a filter. Every other row stays an ordinary row of Spark's: it has no mark, and nothing
after the filter knows of the others. ``docs/decisions/0022-side-outputs.md`` gives the rationale and the figures.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

# The record of a row that leaves, as Spark DDL; the timestamp in epoch microseconds.
RECORD_TYPE = "struct<source: string, topic: string, partition: int, offset: bigint, timestamp: bigint, key: binary, value: binary>"
_OPERATORS = itertools.count()


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
        staged: objects of the checkpoint with side-output rows.
    """

    splits: Mapping[str, Mapping[int, tuple[int, int | None]]] = field(default_factory=dict)
    tags: Mapping[str, Mapping[str, TagCount]] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    staged: tuple[str, ...] = ()

    @classmethod
    def of(cls, session: SparkSession, run: str, batch: int) -> Passed:
        """Of one run of a micro-batch."""
        return cls.parsed(json.loads(_rows(session).counts(run, batch)))

    @classmethod
    def parsed(cls, document: Mapping[str, Any]) -> Passed:
        """From the JSON of ``io.penstock.stream.PassedRows``."""
        splits: dict[str, dict[int, tuple[int, int | None]]] = {}
        tags: dict[str, dict[str, TagCount]] = {}
        rows: Counter[str] = Counter()
        for operator, counted in document["operators"].items():
            name = operator.partition("/")[2]
            rows[name] += counted["rows"]
            splits.setdefault(name, {}).update({int(split): (seen, greatest) for split, (seen, greatest) in counted["splits"].items()})
            of_name = tags.setdefault(name, {})
            for tag, count in counted["tags"].items():
                of_name[tag] = of_name.get(tag, TagCount()) + TagCount(*count)
        return cls(splits, tags, rows, tuple(document["staged"]))

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
        return F.call_function(f"penstock_count_{self._number}", none if split is None else split, no_time if time_ms is None else time_ms)

    def takes(self, tag: str | Column, reason: Column | None = None, record: Column | None = None) -> Column:
        """Takes out each row for which it is evaluated; false.

        Args:
            tag: of the row.
            reason: why, as text; None: without.
            record: of `RECORD_TYPE`; None: the row is only counted.
        """
        why = F.lit(None).cast("string") if reason is None else reason
        what = F.lit(None).cast(RECORD_TYPE) if record is None else record
        return F.call_function(f"penstock_leave_{self._number}", F.lit(tag) if isinstance(tag, str) else tag, why, what)


def kept(frame: DataFrame, condition: Column, tag: str | Column, reason: Column | None = None, record: Column | None = None) -> DataFrame:
    """The rows for which a condition is true; the others leave.

    Args:
        frame: the rows.
        condition: never null.
        tag: of the others.
        reason: why they leave, as text.
        record: of `RECORD_TYPE`; None: they are only counted.
    """
    return frame.where(F.when(condition, F.lit(True)).otherwise(Operator(frame.sparkSession).takes(tag, reason, record)))


def counted(frame: DataFrame, name: str) -> DataFrame:
    """The same rows, counted by an operator with a name."""
    return frame.where(Operator(frame.sparkSession, name).counts())


def lines(session: SparkSession, run: str, batch: int) -> DataFrame:
    """The side-output rows of one run of a micro-batch that are not in objects of the checkpoint: a column ``line`` of JSON."""
    return DataFrame(_rows(session).lines(run, batch), session)


def forget(session: SparkSession) -> None:
    """Forgets what has been counted, once a micro-batch has been recorded."""
    _rows(session).reset()


def current_watermark(session: SparkSession) -> tuple[Column, Column]:
    """The current watermark and up to where state may have been cleared, both in epoch milliseconds or null, as passed to
    `penstock.jobs.stream.task_context.set_watermark`.
    """
    _rows(session).registerWatermark()
    return F.call_function("penstock_current_ms"), F.call_function("penstock_cleared_ms")


def is_own(function: str) -> bool:
    """Whether a SQL function, by its name, is one of these. They are non-deterministic only to Spark."""
    return function.startswith("penstock_")


def _rows(session: SparkSession) -> Any:
    jvm: Any = session.sparkContext._jvm
    return jvm.io.penstock.stream.PassedRows.of(session._jsparkSession)
