from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.scripts.cli import doctor
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.provisioning import state_bucket
from penstock.scripts.provisioning.aws_access import AwsAccess
from tests.emulated.small_stacks import environment


def _run(tmp_path: Path, asked: Environment, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    file = tmp_path / "environment.yaml"
    file.write_text(asked.text())
    parser = argparse.ArgumentParser()
    doctor.add_arguments(parser)
    code = doctor.run(parser.parse_args([str(file), "-o", "json"]))
    findings = json.loads(capsys.readouterr().out)["findings"]
    return code, {one["name"]: one for one in findings if one["group"].startswith("environment")}


def _zoned(asked: Environment, *zones: str) -> Environment:
    production = load("production").model_dump(by_alias=True, exclude_none=True)["spec"]
    data = asked.model_dump(by_alias=True, exclude_none=True)
    data["spec"] |= {part: production[part] for part in ("network", "eks", "nodes", "kafka")}
    data["spec"]["network"] |= {"zones": list(zones), "natGateways": 1}
    return Environment.model_validate(data)


def test_missing_prerequisites_on_aws_are_reported_with_their_fixes(
    aws: EmulatedAws, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = _zoned(environment(aws, "doc"), "us-east-1a", "us-east-1b", "us-east-1z")
    code, result = _run(tmp_path, own, capsys)
    assert code == 4
    assert (result["credentials"]["state"], result["state bucket"]["state"], result["zones"]["state"]) == ("ok", "missing", "missing")
    assert result["state bucket"]["fix"] == "penstock bootstrap doc"
    assert "us-east-1z" in result["zones"]["said"]
    state_bucket.bootstrap(AwsAccess(own))
    _, result = _run(tmp_path, _zoned(own, "us-east-1a", "us-east-1b"), capsys)
    assert {one["state"] for one in result.values()} == {"ok"}


def test_without_an_answer_of_aws_nothing_else_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, result = _run(tmp_path, load("local").at("http://127.0.0.1:1"), capsys)
    assert code == 4
    assert result["credentials"]["said"].startswith("RUN-021")
    assert "zones" not in result
