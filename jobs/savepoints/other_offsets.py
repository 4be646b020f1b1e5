"""A savepoint whose topics are read on at other offsets than its own: those of brokers to which the topics have moved.

Three objects of a query name offsets, and these are replaced in the copies:

- ``offsets/N`` of the last micro-batch, a line for each source in the order of the query's plan: Spark reads on from there. It reads
  ``offsets/N-1`` as well, and takes nothing from it once N is committed.
- ``sources/<position>/0``, where a source began. Spark reads it if a log has no offset of the source.
- ``penstock/batches/N.json``, with ``positions``, from which the driver knows which records it still needs.

The state has no offsets of the sources. Penstock's watermarks of partitions are by their names: those of other topics begin anew, and the
job's watermark stays.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from penstock.jobs.savepoints.errors import OffsetsNotThere
from penstock.jobs.savepoints.manifest import SavedSource, Savepoint
from penstock.jobs.spec.sources import Source
from penstock.jobs.storage.query_record import QueryRecord, SourceRecord

# Topic -> partition -> the next offset to read.
Offsets = Mapping[str, Mapping[int, int]]
# Of the content of an object.
Change = Callable[[bytes], bytes]


@dataclass(frozen=True)
class ReadSource:
    """A source of a query of a savepoint.

    Args:
        query: its name; empty for the first.
        position: in the query's plan.
        name: in the spec.
        saved: what the savepoint has of it.
    """

    query: str
    position: int
    name: str
    saved: SavedSource


def sources_of(savepoint: Savepoint) -> list[ReadSource]:
    """The sources of all queries of a savepoint.

    Raises:
        OffsetsNotThere: JOB-101, the savepoint does not say whose its offsets are.
    """
    return [one for query in savepoint.queries for one in _of_query(savepoint, query)]


def _of_query(savepoint: Savepoint, query: str) -> Iterator[ReadSource]:
    saved = savepoint.queries[query].sources
    for position, (name, source) in enumerate(zip(_names(savepoint, query, len(saved)), saved, strict=True)):
        yield ReadSource(query, position, name, source)


def _names(savepoint: Savepoint, query: str, number: int) -> Sequence[str]:
    record = savepoint.generation.queries.get(query) if savepoint.generation is not None else None
    if record is not None and record.reads is not None and len(record.reads) == number:
        return [one.name for one in record.reads]
    if record is not None and len(record.sources) == number == 1:
        return record.sources
    raise OffsetsNotThere(
        path=f"savepoint {savepoint.name}, {f'query {query}' if query else 'the first query'}",
        given=f"offsets of {number} sources without their names, as earlier releases made them",
        need="a savepoint that says of which source its offsets are",
        fix="start it on its own brokers with this release, and take another one",
    )


def of_these_sources(savepoint: Savepoint, sources: Mapping[str, Source]) -> Savepoint:
    """The savepoint as of a job that reads its topics on at other offsets: it has no others, whatever topics its own were of.

    Args:
        savepoint: as it was taken.
        sources: of the spec, by name.
    """
    generation = savepoint.generation
    if generation is None:
        return savepoint
    queries = {name: _of_these(query, sources) for name, query in generation.queries.items()}
    # Start offsets of queries that had no micro-batch yet are of the brokers that the job has left.
    return savepoint.model_copy(update={"generation": generation.model_copy(update={"queries": queries, "starts": {}})})


def _of_these(query: QueryRecord, sources: Mapping[str, Source]) -> QueryRecord:
    if query.reads is None:
        return query
    return query.model_copy(update={"reads": tuple(_moved(one, sources.get(one.name)) for one in query.reads)})


def _moved(before: SourceRecord, source: Source | None) -> SourceRecord:
    now = None if source is None else SourceRecord.of(before.name, source)
    of_topics = {"topics", "pattern"}
    return now if now is not None and {before.kind, now.kind} <= of_topics else before


def changes(savepoint: Savepoint, starts: Mapping[tuple[str, int], Offsets]) -> dict[str, Change]:
    """What differs in the copies of a savepoint's objects.

    Args:
        savepoint: its manifest.
        starts: query and position of a source -> where it is read on; the others stay as they are.

    Returns:
        Name of an object -> the change of its content.
    """
    found: dict[str, Change] = {}
    objects = savepoint.by_name()
    for query, saved in savepoint.queries.items():
        of_query = {position: offsets for (name, position), offsets in starts.items() if name == query}
        if of_query:
            folder = f"queries/{query}/" if query else ""
            found[f"{folder}offsets/{saved.batch}"] = partial(with_offsets, of_query)
            left = {topic for number, one in enumerate(saved.sources) if number in of_query for topic in one.topics}
            found[f"{folder}penstock/batches/{saved.batch}.json"] = partial(with_positions, of_query, left)
            begun = {f"{folder}sources/{position}/0": partial(with_beginning, offsets) for position, offsets in of_query.items()}
            found |= {name: change for name, change in begun.items() if name in objects}
    return found


def with_offsets(starts: Mapping[int, Offsets], log: bytes) -> bytes:
    """Spark's log of a micro-batch with other end offsets.

    Args:
        starts: position of a source -> its offsets.
        log: content of ``offsets/N``: a line with the version, one with the metadata, and one for each source.
    """
    lines = log.decode().split("\n")
    for position, offsets in starts.items():
        lines[2 + position] = _text(offsets)
    return "\n".join(lines).encode()


def with_beginning(offsets: Offsets, content: bytes) -> bytes:
    """Spark's note of where a source began, with other offsets: they come after a byte 0 and the line of the version."""
    head, _, _ = content.partition(b"{")
    return head + _text(offsets).encode()


def with_positions(starts: Mapping[int, Offsets], left: set[str], record: bytes) -> bytes:
    """The record of a micro-batch with other positions.

    Args:
        starts: position of a source -> its offsets.
        left: topics that those sources have read.
        record: content of ``penstock/batches/N.json``; fields of other releases stay.
    """
    document = json.loads(record)
    positions = {topic: parts for topic, parts in document.get("positions", {}).items() if topic not in left}
    for offsets in starts.values():
        for topic, parts in offsets.items():
            # How far that is from the end is known after the next micro-batch.
            known = positions.setdefault(topic, {})
            known.update({str(number): [offset, None] for number, offset in sorted(parts.items())})
    return json.dumps({**document, "positions": positions}, separators=(",", ":")).encode()


def _text(offsets: Offsets) -> str:
    """As Kafka's connector writes it."""
    parts = {topic: {str(number): parts[number] for number in sorted(parts)} for topic, parts in sorted(offsets.items())}
    return json.dumps(parts, separators=(",", ":"))
