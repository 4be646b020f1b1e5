"""Rows of which an upserting sink can't determine the newest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
from pydantic import TypeAdapter

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.errors import BadDeclaration
from penstock.jobs.job import Job
from penstock.jobs.sinks.newest import refuse_unordered
from penstock.jobs.spec import Sink, load
from penstock.jobs.stream.streams import Stream
from penstock.scripts.layout import ROOT

SINK: TypeAdapter[Sink] = TypeAdapter(Sink)
UNTIMED = Stream(cast(Any, None), timed=False)
POSTGRES = {"connection": "bank", "table": "t", "key": ["id"]}
REDIS = {"connection": "cache", "key": ["id"]}


@pytest.mark.parametrize(
    "sink",
    [
        {"postgres": POSTGRES},
        {"postgres": POSTGRES | {"version": "at", "deletes": True}},
        {"redis": REDIS},
        {"kafka": {"topic": "t", "key": ["id"], "deletes": True}},
    ],
)
def test_rows_without_event_time_are_rejected_where_the_newest_of_a_key_is_kept(sink: dict[str, Any]) -> None:
    with pytest.raises(BadDeclaration, match="JOB-004") as raised:
        refuse_unordered(UNTIMED, SINK.validate_python(sink), "here")
    assert raised.value.path == "here" and "kind: ingestion" in raised.value.fix
    # A version suffices where no tombstone arrives without one.
    assert ("`version`" in raised.value.fix) == (sink == {"postgres": POSTGRES})
    for ordered in (replace(UNTIMED, timed=True), replace(UNTIMED, updates=True)):
        refuse_unordered(ordered, SINK.validate_python(sink), "here")


@pytest.mark.parametrize("sink", [{"postgres": POSTGRES | {"version": "at"}}, {"kafka": {"topic": "t", "key": ["id"]}}, {"console": {}}])
def test_other_sinks_take_rows_without_event_time(sink: dict[str, Any]) -> None:
    refuse_unordered(UNTIMED, SINK.validate_python(sink), "here")


def test_the_error_is_raised_when_the_app_declares_its_output() -> None:
    job = Job(load(ROOT / "jobs/specs/banking_holders.yaml").job, cast(Any, None), KafkaAccess("b:1"), {})
    with pytest.raises(BadDeclaration) as raised:
        job.write(UNTIMED, "out")
    assert raised.value.path == 'job.write(..., "out")' and not job.outputs
