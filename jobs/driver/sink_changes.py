"""What it means that a query that goes on with its checkpoint has other sinks than before. People are told; nothing is refused."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.jobs.storage.query_record import QueryRecord, SinkRecord

_FROM_NOW = "from the next micro-batch on"
_CLOSED = (
    "a driver that is stopped closes its files, and one that has crashed leaves unpublished what was open: let it run and stop it first"
)
_FIRST = (
    ", whose marks start anew: if a crash has interrupted one before, its rows may be there twice; readers need"
    " isolation.level=read_committed"
)


def sink_changes(before: QueryRecord, now: QueryRecord) -> Iterator[str]:
    """What is different, for people; nothing if a release has made one of the records that recorded no sinks.

    Args:
        before: of the query in the generation whose checkpoint it is.
        now: of the query that goes on with it.
    """
    if before.sinks is None or now.sinks is None:
        return
    old, new = ({sink.name: sink for sink in sinks} for sinks in (before.sinks, now.sinks))
    for name, sink in new.items():
        if name in old:
            yield from _of_sink(old[name], sink)
        else:
            yield f"sink {name} is new: {sink.said} gets rows {_FROM_NOW}"
    for name, sink in old.items():
        if name not in new:
            yield f"sink {name} is gone: {sink.said} gets no more rows{_left_open(sink)}"


def _of_sink(old: SinkRecord, new: SinkRecord) -> Iterator[str]:
    if old.kind != new.kind:
        yield f"sink {new.name} was {old.said} and is {new.said} {_FROM_NOW}{_left_open(old)}"
        return
    if old.place != new.place:
        also = ", also the rows of files that are still open" if new.kind == "files" else ""
        yield f"sink {new.name} writes to {new.said} instead of {old.said} {_FROM_NOW}{also}; what is written stays where it is"
    if old.guarantee != new.guarantee:
        yield f"sink {new.name} is {new.guarantee} {_FROM_NOW}{_FIRST if new.guarantee == 'exactly-once' else ''}"


def _left_open(sink: SinkRecord) -> str:
    return f"; {_CLOSED}" if sink.kind == "files" else ""
