"""The JSON Schema of the job spec, for editors."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from penstock.jobs.spec.schema import rendered

JOBS = Path(__file__).resolve().parents[3] / "jobs"
SPECS = sorted((JOBS / "specs").glob("*.yaml"))


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = json.loads((JOBS / "spec.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def test_the_committed_schema_is_that_of_the_models() -> None:
    committed = (JOBS / "spec.schema.json").read_text()
    assert committed == rendered(), "out of date; write it again: python -m penstock.jobs.spec.schema > jobs/spec.schema.json"


@pytest.mark.parametrize("path", SPECS, ids=lambda path: str(path.stem))
def test_the_shipped_specs_are_valid(validator: Draft202012Validator, path: Path) -> None:
    validator.validate(yaml.safe_load(path.read_text()))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "parallelism"), 0),
        (("spec", "parallelism"), "10"),
        (("spec", "paralelism"), 10),
        (("spec", "upgradeMode"), "lastState"),
        (("spec", "executor", "memory"), "1Gib"),
        (("spec", "executor", "memory"), 16),
        (("spec", "driver", "cores"), "nan"),
        (("spec", "trigger"), "10"),
        (("spec", "sources", "Not A Name"), {"kafka": {"topic": "a"}}),
        (("spec", "sources", "a", "kafka", "topic"), "not/a/topic"),
        (("spec", "sources", "a", "kafka", "startingOffsets"), "newest"),
        (("spec", "sinks", "out", "files", "format"), "csv"),
        (("metadata", "name"), "Upper"),
        (("apiVersion",), "penstock/v2"),
    ],
    ids=lambda part: str(part),
)
def test_what_the_models_refuse_the_schema_refuses(validator: Draft202012Validator, path: tuple[str, ...], value: Any) -> None:
    spec = copy.deepcopy(yaml.safe_load((JOBS / "specs/user_credit.yaml").read_text()))
    place = spec
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert not validator.is_valid(spec)


def test_every_default_is_as_a_person_would_write_it() -> None:
    schema = json.loads((JOBS / "spec.schema.json").read_text())
    for part in _parts(schema):
        if "default" in part and not Draft202012Validator({**part, "$defs": schema["$defs"]}).is_valid(part["default"]):
            pytest.fail(f"the default is not valid: {part}")


def _parts(value: Any) -> list[dict[str, Any]]:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    below = [part for item in inner for part in _parts(item)]
    return [value, *below] if isinstance(value, dict) else below


def test_a_field_is_described_in_one_line() -> None:
    schema = json.loads((JOBS / "spec.schema.json").read_text())
    described = [part["description"] for part in _parts(schema) if isinstance(part.get("description"), str)]
    assert "CPU request of the pod in millicores; by default one core per slot." in described
    assert [text for text in described if "\n" in text or "Args:" in text] == []
