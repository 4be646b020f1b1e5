"""A query for people: what it reads, its operators with state, and where its rows go."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.jobs.driver.planning import AnalyzedQuery
from penstock.jobs.state_schema import Column
from penstock.jobs.storage.query_record import OutputMode, SinkRecord, SourceRecord
from penstock.jobs.stream.analyzed_plan import flow_of


class _Flow(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, validate_by_name=True)


class FlowingOperator(_Flow):
    """An operator that keeps state.

    Args:
        id: Spark's, by which the checkpoint's ``state/`` has its state.
        name: of its class in Spark, such as ``Aggregate``.
        keys: the columns by which its state is found.
        feeds: id of the operator that takes its rows; None: the output.
    """

    id: int
    name: str
    keys: tuple[Column, ...]
    feeds: int | None


class FlowingSource(_Flow):
    """A source of the query.

    Args:
        source: as the spec has it; its name is its uid.
        feeds: id of the operator that takes its rows; None: the output.
    """

    source: SourceRecord
    feeds: int | None


class QueryFlow(_Flow):
    """A query of a job.

    Args:
        name: within the job, that of its first sink; empty for the first query.
        output_mode: Spark's.
        operators: in the order of their ids.
        sources: in the order of Spark's plan.
        writes: sinks of its rows.
        side_outputs: sinks of the rows that leave it.
    """

    name: str
    output_mode: OutputMode
    operators: tuple[FlowingOperator, ...]
    sources: tuple[FlowingSource, ...]
    writes: tuple[SinkRecord, ...]
    side_outputs: tuple[SinkRecord, ...]

    @classmethod
    def of(cls, query: AnalyzedQuery) -> Self:
        """Of a query that Spark has analyzed."""
        record, flow = query.record, flow_of(query.structure.frame)
        operators = zip(record.operators, flow.operators, strict=True)
        sources = zip(record.reads or (), flow.sources, strict=True)
        sinks = record.sinks or ()
        return cls(
            name=query.share.query,
            output_mode=record.output_mode or "append",
            operators=tuple(
                FlowingOperator(id=one.id, name=one.name, keys=one.state.keys if one.state else (), feeds=feeds) for one, feeds in operators
            ),
            sources=tuple(FlowingSource(source=one, feeds=feeds) for one, feeds in sources),
            writes=tuple(one for one in sinks if one.name in query.output.routes),
            side_outputs=tuple(one for one in sinks if one.name not in query.output.routes),
        )
