from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.jobs.spec import SpecFile, load
from penstock.jobs.targets import targets
from penstock.scripts.profiling.errors import NotProfiled
from penstock.scripts.profiling.scratch_spec import refuse_what_has_no_backlog, written
from penstock.sizing.plan import plan


def _spec(folder: Path, **spec: Any) -> SpecFile:
    document = {
        "apiVersion": "penstock/v1",
        "kind": "StreamingJob",
        "metadata": {"name": "clicks"},
        "spec": {
            "app": "clicks",
            "load": {"eventsPerSecond": 1000, "eventBytes": 200, "profile": "not-there-yet.json"},
            "executor": {"slots": 4},
            "trigger": "10s",
            "sparkConf": {"spark.executor.cores": 4, "spark.sql.session.timeZone": "UTC"},
            "parameters": {"limit": 3},
            "sources": {"a": {"kafka": {"topic": "clicks", "commitOffsets": True, "maxOffsetsPerTrigger": 10, "partitions": 8}}},
            "sinks": {"out": {"kafka": {"topic": "clicks-out"}}},
            **spec,
        },
    }
    (folder / "clicks.py").write_text("def build(job):\n    job.write(job.source('a', 'user STRING'), 'out')\n")
    path = folder / "clicks.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return load(path)


@pytest.mark.parametrize("slots", [1, 3])
def test_a_run_has_its_slots_and_reads_all_there_is_as_fast_as_it_can(tmp_path: Path, slots: int) -> None:
    run = written(_spec(tmp_path), slots, tmp_path / "run", [tmp_path])
    job = run.job.spec
    assert (job.load, job.parallelism, job.executor.slots, job.trigger, job.parameters) == (None, slots, slots, 100, {"limit": 3})
    source = job.kafka_sources["a"]
    assert (source.starting_offsets, source.commit_offsets, source.max_offsets_per_trigger, source.partitions) == (
        "earliest",
        False,
        None,
        None,
    )
    assert job.spark_conf == {"spark.sql.session.timeZone": "UTC"}
    assert plan(targets(run, [tmp_path])).parallelism.value == slots


@pytest.mark.parametrize(
    ("change", "given"),
    [
        ({"sources": {"f": {"files": {"path": "in", "format": "json"}}}}, "source f"),
        ({"sources": {"a": {"kafka": {"pattern": "views-.*"}}}}, "source a: pattern views-.*"),
        (
            {"bounded": True, "trigger": "availableNow", "sources": {"a": {"kafka": {"topic": "a", "startingOffsets": "earliest"}}}},
            "bounded: true",
        ),
    ],
)
def test_what_has_no_backlog_is_refused(tmp_path: Path, change: dict[str, Any], given: str) -> None:
    with pytest.raises(NotProfiled) as caught:
        refuse_what_has_no_backlog(_spec(tmp_path, **change))
    assert caught.value.given == given
