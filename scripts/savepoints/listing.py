"""The savepoints of a job in tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from penstock.jobs.savepoints.errors import SavepointDamaged, SavepointMissing, SavepointOfNewerRelease
from penstock.jobs.savepoints.folder import Savepoints
from penstock.jobs.savepoints.manifest import SavedQuery, Savepoint
from penstock.jobs.storage.generation import Generation
from penstock.scripts.render.bytes_text import bytes_text
from penstock.scripts.render.screen import Screen
from penstock.scripts.render.table import Column, Row, Styled, facts, table
from penstock.sizing.errors import PenstockError

_NONE = "-"
_LISTED = (
    Column("savepoint"),
    Column("state"),
    Column("made"),
    Column("generation", right=True),
    Column("micro-batches"),
    Column("objects", right=True),
    Column("size", right=True),
)
_PARTITIONS = (Column("query"), Column("topic"), Column("partition", right=True), Column("reads on at", right=True))


@dataclass(frozen=True)
class ListedSavepoint:
    """A savepoint, or what is left of one.

    Args:
        name: of its folder.
        savepoint: None if it has no manifest that can be read.
        why: it has none; None if it has.
    """

    name: str
    savepoint: Savepoint | None
    why: PenstockError | None = None

    @property
    def state(self) -> str:
        """``complete``, ``incomplete``, ``damaged`` or ``newer``."""
        match self.why:
            case None:
                return "complete"
            case SavepointMissing():
                return "incomplete"
            case SavepointOfNewerRelease():
                return "newer"
            case _:
                return "damaged"

    def as_json(self) -> dict[str, object]:
        """The summary for programs: without the objects."""
        saved = self.savepoint
        summary = saved.model_dump(by_alias=True, mode="json", exclude={"objects"}) if saved else {"name": self.name}
        amount = {"objects": len(saved.objects), "bytes": saved.bytes} if saved else {}
        return {**summary, **amount, "state": self.state, **({"error": self.why.as_json()} if self.why else {})}


def listed(savepoints: Savepoints) -> list[ListedSavepoint]:
    """The savepoints of a job, by name, also those that are incomplete.

    Raises:
        BucketUnreachable: JOB-009.
    """
    return [_one(savepoints, name) for name in savepoints.names()]


def _one(savepoints: Savepoints, name: str) -> ListedSavepoint:
    try:
        return ListedSavepoint(name, savepoints.of(name).manifest())
    except (SavepointMissing, SavepointDamaged, SavepointOfNewerRelease) as error:
        return ListedSavepoint(name, None, error)


def savepoints_table(found: Sequence[ListedSavepoint], screen: Screen) -> list[str]:
    """A row for each."""
    return table(_LISTED, [_row(one) for one in found], screen)


def _row(one: ListedSavepoint) -> Row:
    saved = one.savepoint
    if saved is None:
        return (one.name, Styled(one.state, "yellow" if one.state == "incomplete" else "red"), *[_NONE] * 5)
    return (
        one.name,
        Styled(one.state, "green"),
        _time(saved.made),
        _generation(saved.generation),
        ", ".join(str(query.batch) for query in saved.queries.values()),
        f"{len(saved.objects):,}",
        bytes_text(saved.bytes),
    )


def savepoint_lines(saved: Savepoint, uri: str, screen: Screen) -> Iterator[str]:
    """A savepoint with the offsets of its sources."""
    yield f"savepoint {saved.name} of {saved.job}"
    yield ""
    yield from facts(_facts(saved, uri), screen)
    rows = list(_partitions(saved))
    if rows:
        yield ""
        yield from table(_PARTITIONS, rows, screen)


def _facts(saved: Savepoint, uri: str) -> Iterator[tuple[str, str]]:
    yield "folder", uri
    yield "made", f"{_time(saved.made)} UTC{f', by {saved.by}' if saved.by else ''}"
    yield "of", f"{saved.checkpoint}, {saved.whose}, generation {_generation(saved.generation)}"
    if saved.generation is not None:
        versions = saved.generation.versions
        yield "versions", f"Spark {versions.spark}, Penstock {versions.penstock or _NONE}"
    for name, query in saved.queries.items():
        operators = saved.generation.queries[name].operators if saved.generation and name in saved.generation.queries else ()
        state = f"; state of {', '.join(one.name for one in operators)}" if operators else ""
        yield (f"query {name}" if name else "query"), f"{after(query)}{state}"
    yield "objects", f"{len(saved.objects):,}, {bytes_text(saved.bytes)}"


def after(query: SavedQuery) -> str:
    """As of which micro-batch a query is."""
    return f"after micro-batch {query.batch} of {_time(query.at)} UTC, and {query.rows_in:,} records"


def _partitions(saved: Savepoint) -> Iterator[Row]:
    for name, query in saved.queries.items():
        for source in query.sources:
            for topic, partitions in sorted(source.topics.items()):
                for number, offset in sorted(partitions.items()):
                    yield name or _NONE, topic, str(number), f"{offset:,}"


def _generation(generation: Generation | None) -> str:
    return str(generation.number) if generation else _NONE


def _time(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S}"
