from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.jobs.spec import SpecFile, load
from penstock.jobs.storage.query_record import QueryRecord
from penstock.scripts.preview.scratch_spec import Scratch, outside, refuse_what_has_no_offsets, written
from penstock.scripts.preview.state_copy import with_one_more_source
from penstock.scripts.provisioning.errors import NotPreviewed

SINCE, SAVEPOINT = "2026-11-21T12:00:00.000+00:00", "s3a://scratch/clicks/savepoints/preview"


def _spec(folder: Path, **spec: Any) -> SpecFile:
    document = {
        "apiVersion": "penstock/v1",
        "kind": "StreamingJob",
        "metadata": {"name": "clicks"},
        "spec": {
            "app": "clicks",
            "parallelism": 1,
            "executor": {"slots": 1, "memory": "2g"},
            "trigger": "10s",
            "checkpoint": {"retention": "1h"},
            "rewindTo": "2026-11-21T12:00:00Z",
            "topics": {"clicks-out": {"partitions": 3}},
            "connections": {"scores": "http"},
            "sources": {"a": {"kafka": {"topic": "clicks", "commitOffsets": True, "startingOffsets": "committed-or-latest"}}},
            "sinks": {
                "out": {"kafka": {"topic": "clicks-out", "key": ["user"], "guarantee": "exactly-once"}},
                "table": {"postgres": {"connection": "shop", "table": "clicks", "key": ["user"]}},
                "alerts": {"webhook": {"connection": "pager"}},
                "errors": {"kafka": {"topic": "clicks-errors"}},
            },
            **spec,
        },
    }
    path = folder / "clicks.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return load(path)


def test_a_run_ends_commits_no_offsets_and_writes_to_scratch_sinks_alone(tmp_path: Path) -> None:
    spec = _spec(tmp_path)
    spec.document.data["spec"]["sources"]["a"]["kafka"]["startingGroup"] = "another"
    scratch = written(spec, Scratch(SINCE, SAVEPOINT), tmp_path / "before", [tmp_path]).job.spec
    assert (scratch.bounded, scratch.trigger, scratch.initial_savepoint_path) == (True, "availableNow", SAVEPOINT)
    source = scratch.kafka_sources["a"]
    assert (source.topic, source.starting_offsets, source.commit_offsets) == ("clicks", SINCE, False)
    sinks = {name: sink.model_dump(by_alias=True) for name, sink in scratch.sinks.items()}
    assert list(sinks) == list(spec.job.spec.sinks)
    assert all(list(sink) == ["webhook"] for sink in sinks.values())
    places = {sink["webhook"]["connection"] for sink in sinks.values()}
    assert len(places) == 4 and not places & {"shop", "pager", "scores"}
    # Neither the sinks' connections nor anything else is called but what has a stub.
    assert [one.name for one in outside(spec)] == ["scores"]
    without = written(spec, Scratch(SINCE, None), tmp_path / "after", [tmp_path]).job.spec
    assert without.initial_savepoint_path is None


@pytest.mark.parametrize(
    ("spec", "given"),
    [
        ({"sources": {"f": {"files": {"path": "in"}}}, "rewindTo": None}, "source f"),
        ({"sources": {}, "rewindTo": None}, "no source"),
    ],
)
def test_a_job_that_reads_anything_but_topics_is_refused(tmp_path: Path, spec: dict[str, Any], given: str) -> None:
    with pytest.raises(NotPreviewed) as raised:
        refuse_what_has_no_offsets(_spec(tmp_path, **spec))
    assert raised.value.given == given


@pytest.mark.parametrize("heartbeat", ["", '\n{"value":7}'])
def test_an_offset_log_gets_the_source_that_a_bounded_query_has(heartbeat: str) -> None:
    log = 'v1\n{"batchTimestampMs":1}\n{"clicks":{"0":4}}'
    assert with_one_more_source(f"{log}{heartbeat}", QueryRecord.of(["a"], [])) == f"{log}\n-"
