"""What a driver runs, as its fingerprint says it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.jobs.configuration.runtime import IMAGE_VARIABLE, RuntimeConfiguration
from penstock.jobs.driver.fingerprint import fingerprint
from penstock.jobs.spec import load
from penstock.jobs.storage.generation import Fingerprint

SPEC: dict[str, Any] = {
    "apiVersion": "penstock/v1",
    "kind": "StreamingJob",
    "metadata": {"name": "clicks"},
    "spec": {
        "app": "clicks",
        "parallelism": 2,
        "executor": {"slots": 2, "memory": "2g"},
        "sources": {"a": {"kafka": {"topic": "a"}}},
        "sinks": {"out": {"kafka": {"topic": "out"}}},
    },
}


def _fingerprint(folder: Path, change: Callable[[dict[str, Any]], object] = dict, plan: str = "p") -> Fingerprint:
    document: dict[str, Any] = yaml.safe_load(yaml.safe_dump(SPEC))
    change(document["spec"])
    path = folder / "clicks.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    configuration = RuntimeConfiguration(
        spec=str(path), master="local[1]", brokers="localhost:9092", job_folder="s3a://bucket/clicks", plan=plan, output_bucket="output"
    )
    return fingerprint(load(path), configuration)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "clicks.py").write_text("import rules\n", encoding="utf-8")
    (tmp_path / "rules.py").write_text("RULE = 1\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "change",
    [
        lambda spec: spec.update(upgradeMode="stateless"),
        lambda spec: spec.update(local={"expect": "clicks:expect"}),
        lambda spec: spec.update(sorted(spec.items(), reverse=True)),
    ],
    ids=["upgradeMode", "local", "order"],
)
def test_what_a_job_does_not_run_is_no_change(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    assert _fingerprint(folder, change) == _fingerprint(folder)


@pytest.mark.parametrize(
    "change", [lambda spec: spec.update(trigger="5s"), lambda spec: spec.update(restartNonce=1)], ids=["trigger", "restartNonce"]
)
def test_a_field_of_the_spec_is_a_change(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    assert _fingerprint(folder, change).differences(_fingerprint(folder)) == ["spec"]


def test_each_of_the_four_is_told_apart(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _fingerprint(folder)
    assert before.image is None
    assert _fingerprint(folder, plan="another").differences(before) == ["plan"]
    monkeypatch.setenv(IMAGE_VARIABLE, "registry/jobs:1")
    assert _fingerprint(folder).differences(before) == ["image"]
    monkeypatch.delenv(IMAGE_VARIABLE)
    (folder / "rules.py").write_text("RULE = 2\n", encoding="utf-8")
    assert _fingerprint(folder).differences(before) == ["app"]


def test_the_schema_of_a_topic_belongs_to_the_spec(folder: Path) -> None:
    def with_schema(spec: dict[str, Any]) -> None:
        spec["sources"]["a"]["kafka"] |= {"value": "avro", "avro": {"schemaFile": "a.avsc"}}

    schema = folder / "a.avsc"
    schema.write_text('{"type": "record", "name": "A", "fields": [{"name": "x", "type": "int"}]}', encoding="utf-8")
    before = _fingerprint(folder, with_schema)
    schema.write_text('{"type": "record", "name": "A", "fields": [{"name": "x", "type": "long"}]}', encoding="utf-8")
    assert _fingerprint(folder, with_schema).differences(before) == ["spec"]


def test_an_app_that_is_in_no_folder_is_told_apart_by_its_image(folder: Path) -> None:
    assert _fingerprint(folder, lambda spec: spec.update(app="installed.elsewhere")).app == ""
