"""Where a job reads its topics from that is rewound: to a time, or to another point from which it begins anew."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.jobs.driver.errors import RewindImpossible
from penstock.jobs.kafka.brokers import Brokers
from penstock.jobs.spec import JobSpec, KafkaSource
from penstock.jobs.spec.contradictions import need_of_a_rewind
from penstock.jobs.storage.rewind_request import StartPoint
from penstock.sizing.errors import raise_all

if TYPE_CHECKING:
    # It imports Spark, which a workstation need not have.
    from penstock.jobs.sources.opening import Offsets


@dataclass(frozen=True)
class Rewind:
    """A rewind.

    Args:
        starts: source -> topic -> partition -> offset of the first record to read; after the last one where none is.
        ends: likewise, of the next record to be written.
    """

    starts: Mapping[str, Offsets]
    ends: Mapping[str, Offsets]

    @property
    def records(self) -> int:
        """Records that are read again, up to now; an upper bound for topics that are compacted, or written in transactions."""
        return sum(self.ends[name][topic][number] - start for name, topic, number, start in _each(self.starts))


def refuse_what_has_no_past(spec: JobSpec, start: StartPoint) -> None:
    """Raises what prevents a job from being rewound.

    Args:
        spec: the job's.
        start: where it is to begin. What the spec says is possible with all sources.

    Raises:
        RewindImpossible: JOB-093.
    """
    need = need_of_a_rewind(spec)
    if need is not None and start != "spec":
        fix = "upgradeMode: stateless with another restartNonce reads everything again"
        raise RewindImpossible(path="spec.sources", need=need, fix=fix)


def refuse_the_future(start: StartPoint, path: str = "the rewind") -> None:
    """Raises if a start is a time that is yet to come.

    Args:
        start: where a job begins.
        path: what begins there, for the error.

    Raises:
        RewindImpossible: JOB-093.
    """
    now_ms = round(time.time() * 1000)
    if isinstance(start, int) and start > now_ms:
        raise RewindImpossible(path=path, given=instant(start), need=f"a time before {instant(now_ms)}", fix="correct it")


def to(start: StartPoint, sources: Mapping[str, KafkaSource], brokers: Brokers) -> Rewind:
    """A rewind.

    Args:
        start: where the topics are read from; a time in epoch milliseconds is compared with the records' timestamps.
        sources: name -> source.
        brokers: that have the topics.

    Raises:
        RewindImpossible: JOB-093, the time is in the future, or records since then are gone.
        PenstockError: JOB-001, JOB-002, JOB-020, JOB-107.
    """
    refuse_the_future(start)
    since = sources if start == "spec" else {name: _from(source, start) for name, source in sources.items()}
    starts, ends = brokers.starts(since), brokers.ends(sources)
    if isinstance(start, int):
        for topics in starts.values():
            for topic, offsets in topics.items():
                raise_all(_lost(start, topic, brokers.first_times(topic, offsets)))
    return Rewind(starts, ends)


def with_recorded(starts: Mapping[str, Offsets], recorded: Mapping[str, Offsets]) -> dict[str, dict[str, dict[int, int]]]:
    """Start offsets as they are now, and as they were decided when the generation began: a driver that fails before the first micro-batch
    skips nothing that has come since.

    Args:
        starts: of all partitions that exist.
        recorded: of those that existed then.
    """
    merged = {name: {topic: dict(offsets) for topic, offsets in topics.items()} for name, topics in starts.items()}
    for name, topic, number, offset in _each(recorded):
        if number in merged.get(name, {}).get(topic, {}):
            merged[name][topic][number] = offset
    return merged


def written(start: StartPoint) -> str:
    """A start as the command line takes it."""
    return instant(start) if isinstance(start, int) else start


def instant(time_ms: int) -> str:
    """A time as ISO 8601 in UTC."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")


def _from(source: KafkaSource, start: StartPoint) -> KafkaSource:
    return source.model_copy(update={"starting_offsets": written(start)})


def _each(starts: Mapping[str, Offsets]) -> Iterator[tuple[str, str, int, int]]:
    for name, topics in starts.items():
        for topic, offsets in topics.items():
            for number, offset in offsets.items():
                yield name, topic, number, offset


def _lost(time_ms: int, topic: str, first: Mapping[int, int]) -> Iterator[RewindImpossible]:
    """The partitions whose first record was written later: Kafka has deleted those before it.

    Args:
        time_ms: of the rewind.
        topic: name.
        first: partition -> timestamp of the first record that is still there, where others have been before it.
    """
    late = {number: first_ms for number, first_ms in first.items() if first_ms > time_ms}
    if late:
        number = max(late, key=lambda number: late[number])
        yield RewindImpossible(
            path=f"topic {topic}, partition {number}",
            given=instant(time_ms),
            need=f"a time from {instant(late[number])} on, that of the first record that retention has left",
            fix="choose a later time, or read what is left with upgradeMode: stateless and startingOffsets: earliest",
        )
