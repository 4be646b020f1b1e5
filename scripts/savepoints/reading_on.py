"""What it means that a job which starts from a savepoint reads its topics on at other offsets than the savepoint's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.driver import initial_offsets, rewind
from penstock.jobs.driver.errors import RewindImpossible
from penstock.jobs.kafka.brokers import Brokers
from penstock.jobs.savepoints.folder import SavepointFolder
from penstock.jobs.savepoints.manifest import Savepoint
from penstock.jobs.savepoints.other_offsets import Offsets, ReadSource
from penstock.jobs.spec import SpecFile
from penstock.jobs.spec.initial_offsets import SAVEPOINT_TIME, InitialOffsets
from penstock.scripts.operations.rewind_preview import NOT_FROM_HERE, in_one_line
from penstock.scripts.render.node_shares import counted
from penstock.scripts.render.screen import Screen
from penstock.scripts.render.table import Column, Row, facts, table

_NONE = "-"
_PARTITIONS = (
    Column("query"),
    Column("topic"),
    Column("partition", right=True),
    Column("in the savepoint", right=True),
    Column("reads on at", right=True),
    Column("records to read", right=True),
)


@dataclass(frozen=True)
class ReadOn:
    """A partition that is read on.

    Args:
        query: that reads it; empty for the first.
        topic: its topic.
        number: its number.
        saved: the savepoint's offset, which is of other brokers; None if it has none.
        offset: at which it is read on.
        end: offset after the last record now.
        at_its_time: offset of the first record from the savepoint's time on; None if that is not known.
    """

    query: str
    topic: str
    number: int
    saved: int | None
    offset: int
    end: int
    at_its_time: int | None


@dataclass(frozen=True)
class ReadingOn:
    """Where a job reads on.

    Args:
        asked: what is asked for.
        partitions: of all sources; empty if they are not looked up.
        why_not: why they are not; None if they are.
    """

    asked: InitialOffsets
    partitions: tuple[ReadOn, ...] = ()
    why_not: str | None = None

    @property
    def read_again(self) -> int:
        """Records of before the savepoint's time that are read; an upper bound for compacted topics, or transactions."""
        return sum(max(0, one.at_its_time - one.offset) for one in self.partitions if one.at_its_time is not None)

    @property
    def left_out(self) -> int:
        """Records from the savepoint's time on that are not read; an upper bound likewise."""
        return sum(max(0, one.offset - one.at_its_time) for one in self.partitions if one.at_its_time is not None)


def reading_on(
    asked: InitialOffsets, folder: SavepointFolder, saved: Savepoint, spec: SpecFile, access: Callable[[], KafkaAccess]
) -> ReadingOn:
    """Looks up where a job reads on, if the brokers can be reached from this machine.

    Args:
        asked: where.
        folder: of the savepoint.
        saved: its manifest.
        spec: the job's.
        access: says how the brokers are reached.

    Raises:
        OffsetsNotThere: JOB-101.
        RewindImpossible: JOB-093.
        PenstockError: JOB-002, JOB-009.
    """
    initial_offsets.refuse_without_the_brokers(asked, folder, saved)
    try:
        with closing(Brokers(access(), group=f"penstock.{spec.job.metadata.name}")) as brokers:
            return ReadingOn(asked, tuple(_partitions(asked, folder, saved, spec, brokers)))
    except NOT_FROM_HERE as error:
        return ReadingOn(asked, why_not=in_one_line(error))


def _partitions(asked: InitialOffsets, folder: SavepointFolder, saved: Savepoint, spec: SpecFile, brokers: Brokers) -> Iterator[ReadOn]:
    sources = spec.job.spec.kafka_sources
    starts = initial_offsets.found(asked, folder, saved, sources, brokers)
    ends = brokers.ends({one.name: sources[one.name] for one, _ in starts})
    for one, offsets in starts:
        at_its_time: Offsets = {}
        with suppress(RewindImpossible):
            at_its_time = rewind.to(initial_offsets.time_ms_of(saved, one.query), {one.name: sources[one.name]}, brokers).starts[one.name]
        yield from _of_source(one, offsets, ends[one.name], at_its_time)


def _of_source(one: ReadSource, offsets: Offsets, ends: Offsets, at_its_time: Offsets) -> Iterator[ReadOn]:
    for topic, parts in offsets.items():
        for number, offset in parts.items():
            before, then = one.saved.topics.get(topic, {}).get(number), at_its_time.get(topic, {}).get(number)
            yield ReadOn(one.query, topic, number, before, offset, ends[topic][number], then)


def reading_on_lines(found: ReadingOn, screen: Screen) -> Iterator[str]:
    """The partitions in a table, and what is read again or left out."""
    if found.why_not is None:
        yield from table(_PARTITIONS, _rows(found.partitions), screen)
        yield ""
    yield from facts(list(_facts(found)), screen)


def _rows(partitions: Sequence[ReadOn]) -> list[Row]:
    return [
        (
            one.query or _NONE,
            one.topic,
            str(one.number),
            _NONE if one.saved is None else f"{one.saved:,}",
            f"{one.offset:,}",
            f"{one.end - one.offset:,}",
        )
        for one in sorted(partitions, key=lambda one: (one.query, one.topic, one.number))
    ]


def _facts(found: ReadingOn) -> Iterator[tuple[str, str]]:
    yield "reads on", begins(found.asked)
    if found.why_not is not None:
        yield "offsets", f"not looked up: the brokers are not reached from here ({found.why_not}). The driver does when it starts"
    elif any(one.at_its_time is None for one in found.partitions):
        yield "against its time", "not known: the topics do not have all records since the savepoint's time"
    else:
        again, out = counted(found.read_again, "record"), counted(found.left_out, "record")
        yield "read again", f"{again} of before the savepoint's time: the state counts them twice, and their rows are written twice"
        yield "left out", f"{out} since the savepoint's time: neither the state nor the sinks get them"
    if not isinstance(found.asked, Mapping):
        yield "by timestamps", "a record whose timestamp is before then is left out, however late it was written"


def begins(asked: InitialOffsets) -> str:
    """Where the topics are read on, in words."""
    if asked == SAVEPOINT_TIME:
        return "at the first records from the time of each query's last micro-batch on"
    if isinstance(asked, int):
        return f"at the first records from {rewind.instant(asked)} on"
    assert isinstance(asked, Mapping)
    return f"at the offsets that are given of {', '.join(sorted(asked))}"
