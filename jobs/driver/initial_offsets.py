"""Where a job reads its topics on that starts from a savepoint on other brokers: at a time, or at given offsets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from contextlib import closing
from typing import TYPE_CHECKING

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.driver import rewind
from penstock.jobs.kafka.brokers import Brokers
from penstock.jobs.savepoints.errors import OffsetsNotThere
from penstock.jobs.savepoints.folder import SavepointFolder
from penstock.jobs.savepoints.manifest import Savepoint
from penstock.jobs.savepoints.other_offsets import Change, Offsets, ReadSource, changes, of_these_sources, sources_of
from penstock.jobs.spec import KafkaSource, SpecFile
from penstock.jobs.spec.initial_offsets import EARLIEST, LATEST, SAVEPOINT_TIME, InitialOffsets
from penstock.jobs.storage.checkpoint import BatchRecord
from penstock.jobs.storage.rewind_request import StartPoint
from penstock.sizing.errors import raise_all

if TYPE_CHECKING:
    from penstock.jobs.driver.rewind import Rewind

_PATH = "the offsets to read on at"
_ENDS = "penstock/ends.json"


def changed(asked: InitialOffsets, folder: SavepointFolder, savepoint: Savepoint, spec: SpecFile, access: KafkaAccess) -> dict[str, Change]:
    """What differs in the copies of a savepoint's objects: name -> the change of its content.

    Args:
        asked: where the topics are read on at.
        folder: of the savepoint.
        savepoint: its manifest, as it was taken.
        spec: the job's.
        access: to the brokers.

    Raises:
        PenstockError: as `found`; JOB-010.
    """
    with closing(Brokers(access, group=f"penstock.{spec.job.metadata.name}")) as brokers:
        starts = found(asked, folder, savepoint, spec.job.spec.kafka_sources, brokers)
    return changes(savepoint, {(one.query, one.position): offsets for one, offsets in starts})


def found(
    asked: InitialOffsets, folder: SavepointFolder, savepoint: Savepoint, sources: Mapping[str, KafkaSource], brokers: Brokers
) -> list[tuple[ReadSource, Offsets]]:
    """The sources of a savepoint that read topics, with where they are read on at. Nothing is written.

    Args:
        asked: where.
        folder: of the savepoint.
        savepoint: its manifest, as it was taken.
        sources: of the spec that read topics, by name. What the savepoint has of others, the comparison of sources is for.
        brokers: that have the topics.

    Returns:
        Each with topic -> partition -> offset, of all partitions that exist.

    Raises:
        OffsetsNotThere: JOB-101, the topics do not have them.
        RewindImpossible: JOB-093, a time is in the future, or records since then are gone.
        PenstockError: JOB-001, JOB-002, JOB-009.
    """
    refuse_without_the_brokers(asked, folder, savepoint)
    read = [one for one in sources_of(savepoint) if one.name in sources and one.saved.offset is None]
    places = {(one.name, _start(asked, savepoint, one)): {one.name: sources[one.name]} for one in read}
    ranges = {place: rewind.to(place[1], of, brokers) for place, of in places.items()}
    if isinstance(asked, dict):
        raise_all(_read_by_nobody(asked, [topic for (name, _), of in ranges.items() for topic in of.starts[name]]))
    starts = [(one, ranges[one.name, _start(asked, savepoint, one)]) for one in read]
    raise_all(fault for one, of in starts for fault in _faults(asked, one, of))
    return [(one, _offsets(asked, one, of)) for one, of in starts]


def as_read_on(asked: InitialOffsets | None, folder: SavepointFolder, savepoint: Savepoint, spec: SpecFile) -> Savepoint:
    """A savepoint as a job is compared with that starts from it: with other offsets, those that it has are of the sources of the spec.

    Args:
        asked: where the topics are read on at; None: at the savepoint's own offsets.
        folder: of the savepoint.
        savepoint: its manifest.
        spec: the job's.

    Raises:
        PenstockError: as `refuse_without_the_brokers`.
    """
    if asked is None:
        return savepoint
    refuse_without_the_brokers(asked, folder, savepoint)
    return of_these_sources(savepoint, spec.job.spec.sources)


def refuse_without_the_brokers(asked: InitialOffsets, folder: SavepointFolder, savepoint: Savepoint) -> None:
    """Raises what can be known without the brokers.

    Raises:
        OffsetsNotThere: JOB-101.
        RewindImpossible: JOB-093, the time is in the future.
        PenstockError: JOB-009.
    """
    sources_of(savepoint)
    if _ENDS in savepoint.by_name():
        need = "one of a job whose input does not end: this one has the offsets of its ends, too"
        fix = "start it on its own brokers, without other offsets"
        raise OffsetsNotThere(path=folder.uri, given="a savepoint of a bounded run", need=need, fix=fix)
    if isinstance(asked, int):
        rewind.refuse_the_future(asked, _PATH)
    if asked == SAVEPOINT_TIME:
        raise_all(_behind(folder, savepoint))


def _behind(folder: SavepointFolder, savepoint: Savepoint) -> Iterator[OffsetsNotThere]:
    """The topics of which a query had not read all by the time of its last micro-batch: the rest would never be read."""
    for name, query in savepoint.queries.items():
        prefix = f"queries/{name}/" if name else ""
        content = folder.data(savepoint).content(f"{prefix}penstock/batches/{query.batch}.json")
        record = BatchRecord.model_validate_json(content or b'{"batch":-1}')
        for topic, parts in record.positions.items():
            behind = sum(max(0, one.latest - one.next) for one in parts.values() if one.latest is not None)
            if behind:
                yield OffsetsNotThere(
                    path=f"topic {topic}{f' of query {name}' if name else ''}",
                    given=f"{behind:,} records that the job had not read by the savepoint's time",
                    need="a job that had read everything by then: from that time on it would never read them",
                    fix="a time before them, or offsets; or a savepoint of the job once it has caught up",
                )


def _start(asked: InitialOffsets, savepoint: Savepoint, one: ReadSource) -> StartPoint:
    if isinstance(asked, dict):
        return "earliest"
    return asked if isinstance(asked, int) else time_ms_of(savepoint, one.query)


def time_ms_of(savepoint: Savepoint, query: str) -> int:
    """Of the last micro-batch of a query, in epoch milliseconds."""
    return round(savepoint.queries[query].at.timestamp() * 1000)


def _faults(asked: InitialOffsets, one: ReadSource, of: Rewind) -> Iterator[OffsetsNotThere]:
    yield from _fewer(one, of.starts[one.name])
    if isinstance(asked, dict):
        for topic, parts in of.starts[one.name].items():
            yield from _unusable(asked.get(topic, {}), topic, _required(one, topic, of.starts[one.name]), parts, of.ends[one.name][topic])


def _fewer(one: ReadSource, existing: Offsets) -> Iterator[OffsetsNotThere]:
    """The topics that have fewer partitions than the savepoint has offsets of."""
    fix = "create it with as many as it had, and move its records again"
    for topic in one.saved.topics.keys() & existing.keys():
        missing = one.saved.topics[topic].keys() - existing[topic].keys()
        if missing:
            need = f"partition {min(missing)}, too, of which the savepoint has the offset"
            yield OffsetsNotThere(path=f"topic {topic}", given=f"{len(existing[topic])} partitions", need=need, fix=fix)
    saved, now = (sum(map(len, topics.values())) for topics in (one.saved.topics, existing))
    if _renamed(one, existing) and now < saved:
        need = f"at least {saved}, as many as the savepoint has offsets of, of {', '.join(one.saved.topics)}"
        yield OffsetsNotThere(path=f"topics {', '.join(existing)}", given=f"{now} partitions", need=need, fix=fix)


def _renamed(one: ReadSource, existing: Offsets) -> bool:
    return not one.saved.topics.keys() <= existing.keys()


def _read_by_nobody(asked: dict[str, dict[int, int]], topics: list[str]) -> Iterator[OffsetsNotThere]:
    for topic in sorted(asked.keys() - set(topics)):
        need = f"a topic that a source of the savepoint reads: {', '.join(sorted(set(topics))) or 'none'}"
        yield OffsetsNotThere(path=_PATH, given=topic, need=need, fix="correct or remove it")


def _required(one: ReadSource, topic: str, existing: Offsets) -> Set[int]:
    """The partitions of a topic whose offsets must be given: those that have been read under this name or another one."""
    if topic in one.saved.topics:
        return one.saved.topics[topic].keys()
    return existing[topic].keys() if _renamed(one, existing) else set()


def _unusable(
    given: Mapping[int, int], topic: str, required: Set[int], first: Mapping[int, int], ends: Mapping[int, int]
) -> Iterator[OffsetsNotThere]:
    """What is wrong with the offsets that are given of a topic.

    Args:
        given: partition -> offset.
        topic: its name.
        required: partitions whose offsets must be given.
        first: partition -> offset of the first record.
        ends: partition -> offset after the last record.
    """
    path = f"{_PATH}, topic {topic}"
    for number in sorted(given.keys() - first.keys()):
        yield OffsetsNotThere(path=path, given=f"partition {number}", need=f"a partition from 0 to {len(first) - 1}", fix="remove it")
    for number in sorted(required & first.keys() - given.keys()):
        need = "an offset of each partition that the savepoint has read"
        yield OffsetsNotThere(path=path, given=f"none of partition {number}", need=need, fix="add it; -2 is the first one, -1 the end")
    for number in sorted(given.keys() & first.keys()):
        if given[number] not in (EARLIEST, LATEST) and not first[number] <= given[number] <= ends[number]:
            need = f"an offset from {first[number]:,} to {ends[number]:,}, what the brokers have"
            fix = "correct it; if the records are still being copied to these brokers, wait for that"
            yield OffsetsNotThere(path=f"{path}, partition {number}", given=f"{given[number]:,}", need=need, fix=fix)


def _offsets(asked: InitialOffsets, one: ReadSource, of: Rewind) -> Offsets:
    starts = of.starts[one.name]
    if not isinstance(asked, dict):
        return starts
    return {topic: {number: _of(asked, topic, number, of, one.name) for number in parts} for topic, parts in starts.items()}


def _of(asked: dict[str, dict[int, int]], topic: str, number: int, of: Rewind, name: str) -> int:
    """Of a partition that nobody has given, as of one that is new to a query: its beginning."""
    offset = asked.get(topic, {}).get(number, EARLIEST)
    if offset == EARLIEST:
        return of.starts[name][topic][number]
    return of.ends[name][topic][number] if offset == LATEST else offset
