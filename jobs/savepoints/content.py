"""What a start from a committed micro-batch of a query needs of its checkpoint: the last one, or the last one before a time."""

from __future__ import annotations

import contextlib
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from penstock.jobs.savepoints.manifest import SavedQuery, SavedSource
from penstock.jobs.savepoints.state import Read, StateFiles, StateIncomplete
from penstock.jobs.sinks.part_log import Manifest
from penstock.jobs.storage.checkpoint import BatchRecord
from penstock.jobs.storage.offset_log import OffsetLog, topics

_LOG = re.compile(r"(penstock/sinks/[^/]+/)log/(\d+)\.json")
# Whole and few: how each source began, and the files that a source has seen; where a bounded run ends, and whether it has finished.
_ALL = re.compile(r"metadata|sources/.+|penstock/(ends\.json|finished)")


@dataclass(frozen=True)
class Needed:
    """The part of a query.

    Args:
        query: as of the micro-batch.
        names: of the objects to copy.
        written: name -> content of objects that stand for what the whole checkpoint says in another way.
        pending: file sinks whose last decision is not known to be published.
    """

    query: SavedQuery
    names: frozenset[str]
    written: Mapping[str, bytes] = field(default_factory=dict)
    pending: tuple[str, ...] = ()


class TooEarly(Exception):
    """The checkpoint does not keep what a start from that time needs.

    Args:
        earliest: the first time that it keeps; None if there is none.
    """

    def __init__(self, earliest: datetime | None) -> None:
        super().__init__()
        self.earliest = earliest


def needed(names: frozenset[str], read: Read, until: datetime | None = None) -> Needed | None:
    """What a query needs; None if it has committed nothing.

    Args:
        names: of all objects of the query's checkpoint, those of its commits listed before the others.
        read: returns the content of one.
        until: of the micro-batches that were planned up to then the last one; None: the last one of all.

    Raises:
        StateIncomplete: something is missing.
        TooEarly: no micro-batch of before that time is kept.
        ValueError: a log or a record can't be read.
    """
    committed = sorted(int(match[1]) for name in names if (match := re.fullmatch(r"commits/(\d+)", name)))
    if not committed:
        return None
    if until is None:
        return _as_of(committed[-1], names, read)
    before = bisect_right(committed, until, key=lambda batch: _planned(batch, names, read))
    try:
        if before:
            return _as_of(committed[before - 1], names, read)
    except StateIncomplete:
        pass
    raise TooEarly(_earliest(committed[before:], names, read))


def _planned(batch: int, names: frozenset[str], read: Read) -> datetime:
    """When a micro-batch was planned; the beginning of time if its log is gone."""
    name = f"offsets/{batch}"
    ms = OffsetLog.of(read(name).decode()).batch_timestamp_ms if name in names else 0
    return datetime.fromtimestamp(ms / 1000, UTC)


def _earliest(committed: Sequence[int], names: frozenset[str], read: Read) -> datetime | None:
    for batch in committed:
        with contextlib.suppress(StateIncomplete):
            _as_of(batch, names, read)
            return _planned(batch, names, read)
    return None


def _as_of(batch: int, names: frozenset[str], read: Read) -> Needed:
    # Spark reads the last two entries of its logs.
    logs = {f"{log}/{number}" for log in ("offsets", "commits") for number in (batch, batch - 1) if number >= 0}
    record = f"penstock/batches/{batch}.json"
    _refuse_missing({*logs, record}, names)
    sinks = [_of_sink(folder, numbers, batch, names, read) for folder, numbers in _decisions(names).items()]
    chosen = {*logs, record, *(name for name in names if _ALL.fullmatch(name)), *StateFiles(names, read).needed(batch)}
    for one in sinks:
        chosen |= one.names
    return Needed(
        query=_query(batch, OffsetLog.of(read(f"offsets/{batch}").decode()), BatchRecord.model_validate_json(read(record))),
        names=frozenset(chosen),
        written={name: content for one in sinks for name, content in one.written.items()},
        pending=tuple(one.pending for one in sinks if one.pending),
    )


def _refuse_missing(wanted: set[str], names: frozenset[str]) -> None:
    if not wanted <= names:
        raise StateIncomplete(min(wanted - names))


def _query(batch: int, log: OffsetLog, record: BatchRecord) -> SavedQuery:
    at = datetime.fromtimestamp(log.batch_timestamp_ms / 1000, UTC)
    return SavedQuery(batch=batch, at=at, rows_in=sum(record.total_rows_in.values()), sources=tuple(_sources(log)))


def _sources(log: OffsetLog) -> Iterator[SavedSource]:
    for offset in log.sources:
        try:
            read = topics(offset)
        except ValueError:
            # Of a connector of which nothing is known.
            read = {}
        found = {topic: {int(number): end for number, end in partitions.items()} for topic, partitions in read.items()}
        yield SavedSource(topics=found, offset=None if found else offset)


@dataclass(frozen=True)
class _Sink:
    names: frozenset[str] = frozenset()
    written: Mapping[str, bytes] = field(default_factory=dict)
    pending: str = ""


def _decisions(names: frozenset[str]) -> dict[str, list[int]]:
    """Folder of a file sink -> numbers of its decisions."""
    found: dict[str, list[int]] = {}
    for name in names:
        if match := _LOG.fullmatch(name):
            found.setdefault(match[1], []).append(int(match[2]))
    return found


def _of_sink(folder: str, numbers: list[int], batch: int, names: frozenset[str], read: Read) -> _Sink:
    """The last decision up to a micro-batch, with the chunks of the files that are open, and whether its files are published.

    A later decision is only made once the one before is published, so either that or a mark says it; the mark of a later one replaces it.
    Chunks that later decisions have used are deleted: their rows are published, and not open any more.
    """
    used: set[str] = set()
    for number in sorted(numbers, reverse=True):
        log = f"{folder}log/{number:010d}.json"
        manifest = Manifest.model_validate_json(read(log))
        if manifest.batch > batch:
            used.update(manifest.used)
            continue
        left = manifest.without({name for name in used if f"{folder}chunks/{name}" not in names})
        chunks = {f"{folder}chunks/{chunk.name}" for part in left.open for chunk in part.chunks}
        _refuse_missing(chunks, names)
        if left != manifest:
            written = {log: left.model_dump_json().encode(), f"{folder}published/{number:010d}": b""}
            return _Sink(frozenset(chunks), written)
        mark = f"{folder}published/{number:010d}"
        if mark in names or number < max(numbers):
            return _Sink(frozenset({log, *chunks}), {mark: b""})
        decided = bool(manifest.parts or manifest.composed)
        return _Sink(frozenset({log, *chunks}), pending=folder.split("/")[-2] if decided else "")
    if min(numbers) > 0:
        raise StateIncomplete(f"{folder}log/, a decision of micro-batch {batch}")
    return _Sink()
