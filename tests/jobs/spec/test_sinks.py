"""Sinks that contradict each other, or lack something that their own fields require."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from penstock.jobs.spec import StreamingJob, load
from penstock.jobs.spec.sinks import FileSink, KafkaSink
from penstock.sizing.errors import PenstockError


def _faults(folder: Path, *, app: str = "penstock.jobs.apps.user_credit", source: Any = None, **sinks: Any) -> list[tuple[str, str]]:
    spec = {"app": app, "parallelism": 1, "executor": {"memory": "1g"}, "sinks": sinks}
    spec |= {"sources": {"in": source}} if source else {}
    document = {"apiVersion": "penstock/v1", "kind": "StreamingJob", "metadata": {"name": "a"}, "spec": spec}
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    with pytest.raises(PenstockError) as raised:
        load(path)
    return [(fault.code, fault.path) for fault in raised.value.errors]


@pytest.mark.parametrize("other", ["clicks", "clicks/late"])
def test_two_file_sinks_need_folders_that_do_not_lie_in_each_other(tmp_path: Path, other: str) -> None:
    one, two = {"files": {"path": "clicks"}}, {"files": {"path": other}}
    assert _faults(tmp_path, one=one, two=two) == [("SPEC-008", "spec.sinks.two.files.path")]


def test_a_sink_that_writes_tombstones_needs_a_key(tmp_path: Path) -> None:
    assert _faults(tmp_path, out={"kafka": {"topic": "t", "deletes": True}}) == [("SPEC-008", "spec.sinks.out.kafka.deletes")]


@pytest.mark.parametrize(
    ("source", "sink", "field"),
    [
        ({"kafka": {"pattern": "audit-.+"}}, {"kafka": {"topic": "audit-errors"}}, "kafka.pattern"),
        ({"files": {"path": "logs"}}, {"files": {"path": "logs"}}, "files.path"),
        ({"files": {"path": "logs"}}, {"files": {"path": "logs/errors"}}, "files.path"),
        ({"files": {"path": "logs/dt=2025-04-05"}}, {"files": {"path": "logs"}}, "files.path"),
    ],
)
def test_a_job_does_not_read_what_it_writes(tmp_path: Path, source: Any, sink: Any, field: str) -> None:
    assert _faults(tmp_path, source=source, out=sink) == [("SPEC-008", f"spec.sources.in.{field}")]


@pytest.mark.parametrize(
    ("source", "sink"),
    [
        ({"kafka": {"pattern": "audit-.+"}}, {"kafka": {"topic": "audit"}}),
        ({"files": {"path": "logs"}}, {"files": {"path": "logs-out"}}),
        ({"files": {"path": "logs", "bucket": "another"}}, {"files": {"path": "logs"}}),
    ],
)
def test_a_job_may_read_beside_what_it_writes(tmp_path: Path, source: Any, sink: Any) -> None:
    # The reported error is only that of the sink without a key.
    faulty = {"kafka": {"topic": "t", "deletes": True}}
    assert _faults(tmp_path, source=source, out=sink, faulty=faulty) == [("SPEC-008", "spec.sinks.faulty.kafka.deletes")]


def test_an_app_in_sql_has_no_function_to_be_a_sink(tmp_path: Path) -> None:
    assert _faults(tmp_path, app="counts.sql", out={"function": {"name": "publish"}}) == [("SPEC-008", "spec.sinks.out.function")]


@pytest.mark.parametrize("pattern", ["yyyy-MM-dd--HH", "yyyy/MM/dd", "'year='yyyy/'month='MM", "'day-'dd", "HHmm"])
def test_a_date_pattern_makes_folders(pattern: str) -> None:
    assert FileSink.model_validate({"path": "clicks", "datePattern": pattern}).date_pattern == pattern


@pytest.mark.parametrize(
    "pattern", ["YYYY-MM-dd", "yy", "ss", "'dt='", "'_hidden'yyyy", "yyyy/", "/yyyy", "yyyy//MM", "yyyy/.", "'a b'yyyy", "'dt=yyyy"]
)
def test_a_date_pattern_that_is_none_or_hides_files_is_refused(tmp_path: Path, pattern: str) -> None:
    assert _faults(tmp_path, out={"files": {"path": "clicks", "datePattern": pattern}}) == [
        ("SPEC-006", "spec.sinks.out.files.datePattern")
    ]


def test_a_date_pattern_has_no_use_without_dates(tmp_path: Path) -> None:
    sink = {"files": {"path": "clicks", "bucketBy": ["user"], "datePattern": "yyyy"}}
    assert _faults(tmp_path, out=sink) == [("SPEC-006", "spec.sinks.out.files")]


def _fed_back(folder: Path, sink: dict[str, Any], source: dict[str, Any], **spec: Any) -> StreamingJob:
    sources = {
        "clicks": {"kafka": {"topic": "clicks", "startingOffsets": "earliest"}},
        "again": {"kafka": {"startingOffsets": "earliest", **source}},
    }
    document = {
        "app": "apps.a",
        "parallelism": 2,
        "executor": {"memory": "2g"},
        "sources": sources,
        "sinks": {"again": {"kafka": sink}},
        **spec,
    }
    whole = {"apiVersion": "penstock/v1", "kind": "StreamingJob", "metadata": {"name": "a"}, "spec": document}
    (folder / "a.yaml").write_text(yaml.safe_dump(whole), encoding="utf-8")
    return load(folder / "a.yaml").job


def test_a_topic_is_read_and_written_by_one_job_as_a_feedback_alone(tmp_path: Path) -> None:
    sink = {"topic": "rounds", "feedback": {"maxRounds": 3}}
    job = _fed_back(tmp_path, sink, {"topic": "rounds", "partitions": 4})
    # Those that it is read with, not the sink's default.
    assert job.topics() == {"clicks": None, "rounds": 4}
    with pytest.raises(PenstockError, match="SPEC-008") as raised:
        _fed_back(tmp_path, {"topic": "rounds"}, {"topic": "rounds"})
    assert "feedback: {maxRounds: 10}" in raised.value.fix
    with pytest.raises(PenstockError, match="SPEC-008"):
        _fed_back(tmp_path, sink, {"pattern": "roun.*"})


@pytest.mark.parametrize(
    ("source", "spec", "need"),
    [
        ({"topic": "other"}, {}, "a source of the job that names topic rounds"),
        ({"topic": "rounds", "value": "text"}, {}, "value: json of source again"),
        ({"topic": "rounds"}, {"trigger": "availableNow", "bounded": True}, "a job without bounded: true"),
    ],
)
def test_a_feedback_that_cannot_come_back_is_refused(tmp_path: Path, source: dict[str, Any], spec: dict[str, Any], need: str) -> None:
    with pytest.raises(PenstockError, match="SPEC-016") as raised:
        _fed_back(tmp_path, {"topic": "rounds", "feedback": {"maxRounds": 3}}, source, **spec)
    assert need in raised.value.need


def test_a_feedback_has_rounds_and_no_deletes() -> None:
    with pytest.raises(ValidationError, match="feedback without deletes"):
        KafkaSink.model_validate({"topic": "t", "key": ["n"], "deletes": True, "feedback": {"maxRounds": 3}})
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        KafkaSink.model_validate({"topic": "t", "feedback": {"maxRounds": 0}})
