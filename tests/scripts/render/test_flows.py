"""Queries as trees and as a flowchart."""

from __future__ import annotations

import pytest

from penstock.jobs.driver.query_flow import FlowingOperator, FlowingSource, QueryFlow
from penstock.jobs.state_schema import Column
from penstock.jobs.storage.query_record import SinkRecord, SourceRecord
from penstock.scripts.render.flows import as_mermaid, as_trees
from penstock.scripts.render.screen import Screen

pytestmark = pytest.mark.fast

_ERRORS = SinkRecord(name="errors", kind="topic", place="errors", guarantee="at-least-once")
COUNTS = QueryFlow(
    name="",
    output_mode="append",
    operators=(
        FlowingOperator(
            id=0, name="Aggregate", keys=(Column(name="page", type="string"), Column(name="n", type="map<int,int>")), feeds=None
        ),
        FlowingOperator(id=1, name="Join", keys=(), feeds=0),
    ),
    sources=(
        FlowingSource(source=SourceRecord(name="clicks", kind="topics", places=("clicks",)), feeds=1),
        FlowingSource(source=SourceRecord(name="views", kind="pattern", places=('views-"x".+',)), feeds=1),
    ),
    writes=(SinkRecord(name="counts", kind="files", place="counts", guarantee="exactly-once"),),
    side_outputs=(_ERRORS,),
)
BUYERS = QueryFlow(
    name="buyers",
    output_mode="update",
    operators=(),
    sources=(FlowingSource(source=SourceRecord(name="clicks", kind="topics", places=("clicks",)), feeds=None),),
    writes=(SinkRecord(name="buyers", kind="table", place="db buyers"),),
    side_outputs=(_ERRORS,),
)


def test_a_tree_a_query_goes_from_its_sinks_to_its_sources() -> None:
    assert as_trees("pages", [COUNTS, BUYERS], Screen()) == (
        "query pages: rows are final\n"
        "  writes     counts: files counts, exactly-once\n"
        "  side rows  errors: topic errors, at-least-once\n"
        "operator 0: Aggregate by page string, n map<int,int>\n"
        "└── operator 1: Join\n"
        "    ├── source clicks: topics clicks\n"
        '    └── source views: pattern views-"x".+\n'
        "\n"
        "query buyers: rows are updates of earlier ones\n"
        "  writes     buyers: table db buyers\n"
        "  side rows  errors: topic errors, at-least-once\n"
        "source clicks: topics clicks\n"
        "\n"
    )


def test_a_flowchart_has_every_part_once_a_query_and_each_sink_once() -> None:
    lines = [line.strip() for line in as_mermaid("pages", [COUNTS, BUYERS]).splitlines()]
    assert lines[0] == "flowchart LR"
    assert 'q0s1[/"views: pattern views-#quot;x#quot;.+"/]' in lines
    assert 'q0o0["operator 0: Aggregate by page string, n map#lt;int,int#gt;"]' in lines
    for edge in ("q0s0 --> q0o1", "q0s1 --> q0o1", "q0o1 --> q0o0", "q0o0 --> q0out", "q1s0 --> q1out", "q0out --> sink0"):
        assert lines.count(edge) == 1, edge
    assert [line for line in lines if "topic errors" in line] == ['sink1[("errors<br>topic errors, at-least-once")]']
    assert ("q0 -.-> sink1" in lines, "q1 -.-> sink1" in lines, "q1out --> sink2" in lines) == (True, True, True)
