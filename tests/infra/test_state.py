from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.infra.state_key import state_key

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="cdktf needs Node.js, and node is not in PATH")


def _two_stacks(environment: Environment, folder: Path) -> dict[str, Any]:
    """Two stacks, the second of which uses an output of the first: Terraform's input, by stack."""
    from cdktf import App, DataResource, TerraformStack

    from penstock.infra.state import keep_state

    app = App(outdir=str(folder))
    first, second = TerraformStack(app, "first"), TerraformStack(app, "second")
    for stack in (first, second):
        keep_state(stack, environment)
    made = DataResource(first, "made", input={"a": "b"})
    DataResource(second, "uses", input={"a": made.id})
    app.synth()
    return {name: json.loads((folder / f"stacks/{name}/cdk.tf.json").read_text()) for name in ("first", "second")}


def _with_bucket(environment: Environment) -> Environment:
    data = environment.model_dump(by_alias=True, exclude_none=True)
    data["spec"]["state"] = {"bucket": "the-state"}
    return Environment.model_validate(data)


def _remote(stack: dict[str, Any]) -> dict[str, Any]:
    (remote,) = stack["data"]["terraform_remote_state"].values()
    assert remote["backend"] == "s3"
    config: dict[str, Any] = remote["config"]
    return config


def test_on_aws_the_state_is_encrypted_locked_and_of_the_environments_account(tmp_path: Path) -> None:
    environment = _with_bucket(load("production"))
    stacks = _two_stacks(environment, tmp_path)
    place = {
        "bucket": "the-state",
        "key": "production/first.tfstate",
        "region": "us-east-1",
        "encrypt": True,
        "allowed_account_ids": [environment.spec.account],
    }
    assert stacks["first"]["terraform"]["backend"] == {"s3": {**place, "use_lockfile": True}}
    # Reading the outputs of another stack does not take its lock.
    assert _remote(stacks["second"]) == place


def test_an_emulated_aws_is_asked_for_the_state_too_also_by_the_other_stack(tmp_path: Path) -> None:
    stacks = _two_stacks(_with_bucket(load("local").at("http://127.0.0.1:4566")), tmp_path)
    backend = stacks["first"]["terraform"]["backend"]["s3"]
    assert backend["endpoints"] == dict.fromkeys(("iam", "s3", "sts"), "http://127.0.0.1:4566")
    assert backend["use_path_style"]
    assert backend["use_lockfile"]
    assert _remote(stacks["second"]) == {name: value for name, value in backend.items() if name != "use_lockfile"}


def test_no_credentials_are_written_into_a_stack(tmp_path: Path) -> None:
    for environment in (load("production"), load("local").at("http://127.0.0.1:4566")):
        stacks = _two_stacks(_with_bucket(environment), tmp_path / environment.name)
        assert not {"access_key", "secret_key", "token", "profile"} & set(stacks["first"]["terraform"]["backend"]["s3"])


def test_without_a_bucket_the_state_is_a_file_of_the_environments_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_TERRAFORM_STATE", str(tmp_path / "state"))
    environment = load("production")
    alone = environment.model_copy(update={"spec": environment.spec.model_copy(update={"state": None})})
    stacks = _two_stacks(alone, tmp_path / "out")
    assert stacks["first"]["terraform"]["backend"]["local"]["path"] == "../../../state/production/first.tfstate"


def test_environments_may_share_a_bucket() -> None:
    assert state_key("dev", "network") != state_key("production", "network")
