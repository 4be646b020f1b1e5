"""The content of a checkpoint as tables for people."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from penstock.jobs.watermark import END_MS
from penstock.scripts.operations.checkpoint_content import Amount, CheckpointContent, FileSink, QueryContent, SinkFile, StatefulOperator
from penstock.scripts.render.bytes_text import bytes_text
from penstock.scripts.render.node_shares import counted
from penstock.scripts.render.screen import Screen
from penstock.scripts.render.table import Column, Row, facts, table

_NONE = "-"
_OFFSETS = (
    Column("source"),
    Column("partition"),
    Column("from", right=True),
    Column("to", right=True),
    Column("records", right=True),
    Column("greatest event time", wraps=True),
)
_STATE = (
    Column("operator"),
    Column("store"),
    Column("partitions", right=True),
    Column("version", right=True),
    Column("oldest", right=True),
    Column("objects", right=True),
    Column("size", right=True),
)
_SCHEMAS = (Column("operator"), Column("column family"), Column("key", wraps=True), Column("value", wraps=True))
_SINKS = (
    Column("sink"),
    Column("decision", right=True),
    Column("file", wraps=True),
    Column("rows", right=True),
    Column("size", right=True),
    Column("state"),
)


def content_text(content: CheckpointContent, screen: Screen) -> str:
    """A checkpoint, its queries one below the other."""
    where = f", generation {content.generation}" if content.generation else ""
    lines = [f"checkpoint of {content.job}{where}", "", *facts(_of_checkpoint(content), screen)]
    for query in content.queries:
        lines += ["", f"query {query.name}" if query.name else "first query", "", *_query(query, screen)]
    return "\n".join(lines) + "\n"


def _of_checkpoint(content: CheckpointContent) -> Iterator[tuple[str, str]]:
    yield "folder", content.checkpoint
    yield "identity", content.identity or _NONE
    yield "size", _amount(content.amount)
    if content.finished:
        yield "finished", "the bounded run has ended"


def _query(query: QueryContent, screen: Screen) -> list[str]:
    lines = facts(_of_query(query), screen)
    for columns, rows in (
        (_OFFSETS, [*_offsets(query)]),
        (_STATE, [row for operator in query.operators for row in _state(operator)]),
        (_SCHEMAS, [row for operator in query.operators for row in _schemas(operator)]),
        (_SINKS, [row for sink in query.sinks for row in _files(sink)]),
    ):
        if rows:
            lines += ["", *table(columns, rows, screen)]
    return lines


def _of_query(query: QueryContent) -> Iterator[tuple[str, str]]:
    if query.micro_batch < 0:
        yield "micro-batch", "none is committed"
    else:
        yield "micro-batch", f"{query.micro_batch} of {_moment(query.at)}"
        yield "committed", _moment(query.committed) if query.committed else "no"
        yield "kept", f"{query.first_kept} to {query.last_planned}, committed to {query.last_committed}"
    if record := query.record:
        yield "watermark", f"{_millis(record.watermarks.current_ms)} after it, {_millis(record.began_with_ms)} before"
        for name, rows in record.rows_in.items():
            yield f"read {name}", f"{rows:,} records, {record.total_rows_in.get(name, 0):,} since the checkpoint began"
        for tag, rows in record.tags.items():
            yield f"rows {tag}", f"{rows:,}, {record.total_tags.get(tag, 0):,} since the checkpoint began"
        for name, rows in record.total_late.items():
            yield f"late {name}", f"{rows:,} since the checkpoint began"
    for part, amount in query.amounts.items():
        yield part, _amount(amount)


def _offsets(query: QueryContent) -> Iterator[Row]:
    times = query.record.watermarks.partitions if query.record else {}
    for source in query.sources:
        names = ", ".join(source.names) or _NONE
        if source.offset is not None:
            yield names, _NONE, _NONE, source.offset, _NONE, _NONE
        for one in source.partitions:
            label = f"{one.topic}-{one.partition}"
            greatest = next((times[name][label].greatest_ms for name in source.names if label in times.get(name, {})), None)
            start, records = (_NONE, _NONE) if one.start is None else (f"{one.start:,}", f"{max(0, one.end - one.start):,}")
            yield names, label, start, f"{one.end:,}", records, _millis(greatest)


def _state(operator: StatefulOperator) -> Iterator[Row]:
    amount = f"{operator.amount.objects:,}", bytes_text(operator.amount.bytes)
    for number, store in enumerate(operator.stores):
        oldest = _NONE if store.oldest_version is None else str(store.oldest_version)
        more = amount if number == 0 else ("", "")
        yield f"{operator.id} {operator.name}", store.name, str(store.partitions), str(store.version), oldest, *more


def _schemas(operator: StatefulOperator) -> Iterator[Row]:
    for store in operator.stores:
        for schema in store.schemas:
            yield f"{operator.id} {operator.name}", schema.name or store.name, schema.key, schema.value


def _files(sink: FileSink) -> Iterator[Row]:
    files = [(one, state) for state, some in _by_state(sink).items() for one in some]
    for one, state in files:
        yield sink.name, str(sink.decision), one.key or "/", f"{one.rows:,}", bytes_text(one.bytes), state
    if not files:
        yield sink.name, str(sink.decision), _NONE, "0", _NONE, "no files"


def _by_state(sink: FileSink) -> dict[str, tuple[SinkFile, ...]]:
    return {"pending": sink.pending, "published": sink.published, "open": sink.open}


def _amount(amount: Amount) -> str:
    return f"{counted(amount.objects, 'object')}, {bytes_text(amount.bytes)}"


def _millis(moment_ms: int | None) -> str:
    if moment_ms is None:
        return _NONE
    return "the end of the input" if moment_ms == END_MS else _moment(datetime.fromtimestamp(moment_ms / 1000, UTC))


def _moment(moment: datetime | None) -> str:
    return _NONE if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
