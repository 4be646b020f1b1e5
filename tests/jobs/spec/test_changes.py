from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.jobs.spec.change_effects import EFFECTS, effect_of
from penstock.jobs.spec.changes import changed_fields, kinds_of_fields
from penstock.jobs.spec.job import StreamingJob
from penstock.jobs.spec.reading import json_schema

SPECS = Path(__file__).resolve().parents[3] / "jobs/specs"


def test_every_field_of_the_spec_has_a_meaning_when_it_changes_and_nothing_else_has_one() -> None:
    assert {".".join(kind) for kind in kinds_of_fields()} == {".".join(kind) for kind in EFFECTS}


def test_no_field_of_the_document_is_left_out() -> None:
    """The kinds of fields come from the models' types, their names here from the schema that pydantic makes of them."""
    schema = json_schema()
    named = {name for model in (schema, *schema["$defs"].values()) for name in model.get("properties", {})}
    parts = {"metadata", "spec", "packages", "stages", "executor", "driver", "restart", "checkpoint", "local", "cache", "roll"}
    parts |= {"sources", "tables", "sinks", "topics", "connections", "parameters", "sparkConf", "config", "input", "files", "kafka"}
    parts |= {"postgres", "redis", "http", "socket", "webhook", "console", "function"}
    assert named - {name for kind in EFFECTS for name in kind} <= parts


def _spec(change: Any = None) -> StreamingJob:
    document = yaml.safe_load((SPECS / "user_credit.yaml").read_text("utf-8"))
    if change is not None:
        change(document["spec"])
    return StreamingJob.model_validate(deepcopy(document), strict=True)


@pytest.mark.parametrize(
    ("change", "path", "effect"),
    [
        (lambda spec: spec.update(trigger="3s"), "spec.trigger", "restart"),
        (lambda spec: spec["sources"]["a"]["kafka"].update(topic="other"), "spec.sources.a.kafka.topic", "state must be reset"),
        (lambda spec: spec["sources"].pop("b"), "spec.sources.b", "state must be reset"),
        (lambda spec: spec["sources"].update(c=spec["sources"]["a"]), "spec.sources.c", "restart with state"),
        (lambda spec: spec["sources"]["a"]["time"].update(idleness="7m"), "spec.sources.a.time.idleness", "restart with state"),
        (lambda spec: spec.update(stages={"stateful": 3}), "spec.stages.stateful", "state must be reset"),
        (lambda spec: spec.update(parallelism=3), "spec.parallelism", "restart"),
        (lambda spec: spec.update(quarantine={"share": 0.5}), "spec.quarantine", "restart"),
        (lambda spec: spec["sinks"].update(out={"console": {}}), "spec.sinks.out", "restart"),
        (lambda spec: spec.update(sparkConf={**spec.get("sparkConf", {}), "spark.a.b": 1}), "spec.sparkConf.spark.a.b", "restart"),
        (lambda spec: spec.update(upgradeMode="stateless"), "spec.upgradeMode", "nothing"),
    ],
)
def test_a_change_is_found_where_it_is(change: Any, path: str, effect: str) -> None:
    before, now = _spec(), _spec(change)
    (field,) = changed_fields(before, now)
    assert (".".join(field.path), effect_of(field, before, now).effect) == (path, effect)


def _reads(**kafka: Any) -> StreamingJob:
    def change(spec: Any) -> None:
        own = spec["sources"]["a"]["kafka"]
        del own["topic"]
        own.update(kafka)

    return _spec(change)


@pytest.mark.parametrize(
    ("before", "now", "effect"),
    [
        ({"topic": "one"}, {"topics": ["one", "two"]}, "restart with state"),
        ({"topics": ["one"]}, {"topics": ["two", "one"]}, "restart with state"),
        ({"topics": ["one", "two"]}, {"topics": ["one"]}, "state must be reset"),
        ({"topics": ["one"]}, {"topics": ["two"]}, "state must be reset"),
        ({"pattern": "one-.*"}, {"pattern": "two-.*"}, "state must be reset"),
    ],
)
def test_topics_may_be_added_to_a_source_and_not_taken_away(before: dict[str, Any], now: dict[str, Any], effect: str) -> None:
    ran, wanted = _reads(**before), _reads(**now)
    assert {effect_of(field, ran, wanted).effect for field in changed_fields(ran, wanted)} == {effect}


def test_other_topics_need_no_empty_state_where_the_job_reads_on_from_a_savepoint_at_other_offsets() -> None:
    place = {"initialSavepointPath": "s3a://bucket/j/savepoints/one", "restartNonce": 1}
    ran = _reads(topics=["one"])
    for more, effect in (({}, "state must be reset"), ({"initialOffsets": "savepointTime"}, "restart with state")):
        wanted = _spec(lambda spec: (spec["sources"]["a"].update(kafka={"topics": ["two"]}), spec.update({**place, **more})))  # noqa: B023
        (field,) = (one for one in changed_fields(ran, wanted) if one.path[-1] == "topics")
        assert effect_of(field, ran, wanted).effect == effect


def test_a_default_that_is_written_out_is_no_change() -> None:
    assert not changed_fields(_spec(), _spec(lambda spec: spec.update(bounded=False, state={"backend": "rocksdb"})))
