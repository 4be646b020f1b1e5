"""Whether the offsets in a checkpoint are those of the sources of the queries that are to go on with it.

A checkpoint has the offsets of a query's sources by their position in its plan, without a name. Spark refuses another number of sources in
the first micro-batch, when the driver before is gone; offsets of another topic it takes for records that are lost; and a folder of files
in the place of another one it reads from its beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.jobs.driver.errors import SourcesDiffer
from penstock.jobs.storage.query_record import QueryRecord, SourceRecord

_FIX = (
    "restore the sources, with their names and in their order; or begin without the checkpoint: upgradeMode: stateless and another"
    " restartNonce; or read them by an output of their own, which has a checkpoint of its own"
)


def source_changes(before: Mapping[str, QueryRecord], now: Mapping[str, QueryRecord]) -> Iterator[SourcesDiffer]:
    """The queries whose checkpoint has offsets of other sources.

    Args:
        before: query -> its record in the generation whose checkpoint it is; the first query's name is empty.
        now: the same of the queries that go on with it.
    """
    for name in sorted(before.keys() & now.keys()):
        old, new = before[name].reads, now[name].reads
        if old is not None and new is not None:
            yield from _of_query(f"query {name}" if name else "the query", old, new)


def _of_query(query: str, before: tuple[SourceRecord, ...], now: tuple[SourceRecord, ...]) -> Iterator[SourcesDiffer]:
    if [one.name for one in before] != [one.name for one in now]:
        need = f"the sources whose offsets the checkpoint has, in this order: {_names(before)}"
        yield SourcesDiffer(path=query, given=_names(now), need=need, fix=_FIX)
        return
    for old, new in zip(before, now, strict=True):
        if not _same_place(old, new):
            need = f"what the checkpoint has offsets of: {_place(old)}"
            yield SourcesDiffer(path=f"{query}, source {new.name}", given=_place(new), need=need, fix=_FIX)


def _same_place(old: SourceRecord, new: SourceRecord) -> bool:
    """Whether the offsets of one are of the other: topics may be added, and Spark says which of a pattern are gone."""
    if {old.kind, new.kind} == {"topics"}:
        return set(old.places) <= set(new.places)
    return {old.kind, new.kind} <= {"topics", "pattern"} or (old.kind, old.places) == (new.kind, new.places)


def _names(sources: tuple[SourceRecord, ...]) -> str:
    return ", ".join(one.name for one in sources)


def _place(source: SourceRecord) -> str:
    return f"{source.kind} {', '.join(source.places)}"
