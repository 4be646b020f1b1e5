from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.provider_lock import FILE, SHIPPED, read, write
from penstock.scripts.errors import MissingTool, ProviderNotFound, TerraformFailed, TerraformStopped, TerraformTimeout
from penstock.scripts.provisioning.errors import ProviderNotLocked, StateMoved, StateNotWritten
from penstock.scripts.provisioning.provider_mirror import VARIABLE, system
from penstock.scripts.provisioning.terraform import Applied, Change, Terraform
from penstock.sizing.errors import Faults

pytestmark = pytest.mark.emulated

Stack = Callable[..., Terraform]


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    """A stack of terraform_data resources, which need no provider: a command per name."""
    if shutil.which("terraform") is None:
        pytest.skip("terraform is not in PATH")

    def make(limit_s: float | None = None, **commands: str) -> Terraform:
        folder = tmp_path / "stack"
        folder.mkdir(exist_ok=True)
        resources = {name: {"provisioner": {"local-exec": {"command": command, "quiet": True}}} for name, command in commands.items()}
        content: dict[str, Any] = {
            "terraform": {"backend": {"local": {"path": "state/terraform.tfstate"}}},
            "resource": {"terraform_data": resources},
            "output": {"greeting": {"value": "hello"}},
        }
        (folder / "cdk.tf.json").write_text(json.dumps(content))
        return Terraform(folder, environment=os.environ, limit_s=limit_s)

    return make


def test_a_stack_is_applied_with_progress_read_back_and_destroyed(stack: Stack) -> None:
    terraform = stack(one="true", two="true")
    seen: list[str] = []
    applied = terraform.apply(seen.append)
    assert sorted(seen) == ["terraform_data.one", "terraform_data.two"]
    assert sorted(change.address for change in applied.changes) == sorted(seen)
    assert applied.count("create") == 2
    assert applied.outputs == terraform.output() == {"greeting": "hello"}
    assert not terraform.plan()
    assert stack(one="true", two="true", three="true").plan()
    assert stack(one="true", two="true").destroy().count("delete") == 2


def test_what_was_applied_is_said_in_a_line() -> None:
    changes = (Change("a", "create", 1), Change("b", "create", 0), Change("c", "update", 0), Change("d", "delete", 0))
    assert str(Applied(changes, {}, 12.3)) == "2 created, 1 changed, 1 destroyed in 12 s"
    assert str(Applied((), {}, 1.0)) == "nothing to do in 1 s"


def test_terraforms_diagnostics_are_reported_with_the_resource(stack: Stack) -> None:
    with pytest.raises(TerraformFailed) as raised:
        stack(bad="echo no room >&2; exit 3").apply()
    assert raised.value.path == "terraform_data.bad"
    assert "exit status 3" in raised.value.given
    assert raised.value.exit_code == 5


def test_all_failed_resources_are_reported(stack: Stack) -> None:
    with pytest.raises(Faults) as raised:
        stack(bad="exit 3", good="true", worse="exit 4").apply()
    assert sorted(error.path for error in raised.value.errors) == ["terraform_data.bad", "terraform_data.worse"]


def test_a_broken_stack_is_reported_with_terraforms_diagnostics(stack: Stack) -> None:
    terraform = stack()
    (terraform.folder / "cdk.tf.json").write_text('{"terraform": {}, "resource": {"terraform_data": {"x": {"nonsense": 1}}}}')
    with pytest.raises(TerraformFailed) as raised:
        terraform.plan()
    assert "nonsense" in raised.value.given


def _holding(pipe: Path) -> str:
    return f"exec 9>{pipe}; echo begun >&9; sleep 1000"


def test_an_apply_beyond_its_limit_is_stopped_and_leaves_no_process(stack: Stack, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    terraform = stack(slow=_holding(pipe))
    terraform.init()
    with pytest.raises(TerraformTimeout) as raised:
        stack(limit_s=5, slow=_holding(pipe)).apply()
    assert raised.value.need == "completion within 5 s"
    os.set_blocking(reader, True)
    with os.fdopen(reader, "rb") as file:
        # The pipe ends when no process holds it any more; on a slow machine the command had not started yet.
        assert file.read() in (b"begun\n", b"")


def test_a_call_is_stopped_from_another_thread_and_none_follows(stack: Stack, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    terraform = stack(slow=_holding(pipe))
    raised: list[BaseException] = []

    def apply() -> None:
        try:
            terraform.apply()
        except TerraformStopped as error:
            raised.append(error)

    thread = threading.Thread(target=apply)
    thread.start()
    with pipe.open("rb") as file:
        assert file.readline() == b"begun\n"
        terraform.stop()
        assert file.read() == b""
    thread.join()
    assert [type(error) for error in raised] == [TerraformStopped]
    with pytest.raises(TerraformStopped):
        terraform.plan()


def test_a_missing_terraform_is_named_with_how_to_get_it(stack: Stack, tmp_path: Path) -> None:
    folder = stack().folder
    with pytest.raises(MissingTool) as raised:
        Terraform(folder, environment={"PATH": str(tmp_path)}).plan()
    assert raised.value.path == "terraform"
    assert "install" in raised.value.fix


def test_a_provider_that_is_nowhere_is_named_with_the_places_that_were_searched(stack: Stack, tmp_path: Path) -> None:
    terraform = stack()
    provider = {"required_providers": {"aws": {"source": "aws", "version": "0.0.0"}}}
    (terraform.folder / "cdk.tf.json").write_text(json.dumps({"terraform": provider, "resource": {"aws_s3_bucket": {"x": {}}}}))
    own = {"HOME": str(tmp_path), "TF_REGISTRY_CLIENT_TIMEOUT": "2", "TF_REGISTRY_DISCOVERY_RETRY": "0"}
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TF_", "PENSTOCK_"))}
    with pytest.raises(ProviderNotFound) as raised:
        Terraform(terraform.folder, environment={**environment, **own}).init()
    assert "hashicorp/aws 0.0.0" in raised.value.path
    assert "below /opt" in raised.value.given
    assert "PENSTOCK_TERRAFORM_MIRROR" in raised.value.fix
    assert raised.value.exit_code == 4


def test_a_state_that_could_not_be_written_stops_what_would_not_know_of_it(stack: Stack) -> None:
    terraform = stack(one="true")
    (terraform.folder / "errored.tfstate").write_text("{}")
    with pytest.raises(StateNotWritten) as raised:
        terraform.plan()
    assert f"terraform -chdir={terraform.folder} state push errored.tfstate" in raised.value.fix


def test_a_state_in_another_place_than_before_is_not_left_behind_in_silence(stack: Stack) -> None:
    stack(one="true").apply()
    moved = stack(one="true")
    content = json.loads((moved.folder / "cdk.tf.json").read_text())
    content["terraform"]["backend"]["local"]["path"] = "elsewhere.tfstate"
    (moved.folder / "cdk.tf.json").write_text(json.dumps(content))
    with pytest.raises(StateMoved) as raised:
        moved.plan()
    assert "init -migrate-state" in raised.value.fix


def test_what_is_planned_is_applied_and_nothing_else(stack: Stack, tmp_path: Path) -> None:
    terraform = stack(one="true")
    planned = terraform.plan_to(tmp_path / "plan")
    assert [change["address"] for change in planned["resource_changes"]] == ["terraform_data.one"]
    seen: list[Any] = []
    later = stack(one="true", two="true")
    assert later.apply_plan(tmp_path / "plan", lambda event: seen.append(event["type"])).count("create") == 1
    assert {"apply_start", "apply_complete"} <= set(seen)
    assert [resource.address for resource in later.resources()] == ["terraform_data.one"]
    both = stack(one="true", two="true")
    both.apply()
    both.plan_to(tmp_path / "destroy", destroy=True, targets=["terraform_data.two"])
    assert both.apply_plan(tmp_path / "destroy").count("delete") == 1
    assert not [name for name in ("show", "state") if (both.folder / f"terraform-{name}.log").exists()]


@pytest.fixture
def locked(stack: Stack, tmp_path: Path) -> Terraform:
    """A stack with the shipped lock file, and a mirror whose package of the AWS provider is not the release's. An init doesn't start it."""
    folder = stack().folder
    provider = {"required_providers": {"aws": {"source": "aws", "version": "5.100.0"}}}
    (folder / "cdk.tf.json").write_text(json.dumps({"terraform": provider}))
    package = tmp_path / "mirror/registry.terraform.io/hashicorp/aws/5.100.0" / system()
    package.mkdir(parents=True)
    (package / "terraform-provider-aws_v5.100.0_x5").write_text("#!/bin/sh\n")
    write(folder, tmp_path)
    return Terraform(folder, environment={**os.environ, VARIABLE: str(tmp_path / "mirror")})


def test_a_package_that_is_not_the_releases_is_refused(locked: Terraform, tmp_path: Path) -> None:
    with pytest.raises(ProviderNotLocked) as raised:
        locked.plan()
    assert raised.value.code == "DEP-056"
    assert raised.value.path == "registry.terraform.io/hashicorp/aws 5.100.0"
    assert str(tmp_path / "mirror") in raised.value.given
    assert f"-platform={system()}" in raised.value.fix


def test_what_the_error_says_makes_a_package_of_ones_own_accepted_and_another_hash_refuses_it(locked: Terraform, tmp_path: Path) -> None:
    with pytest.raises(ProviderNotLocked) as raised:
        locked.init()
    # The command of the fix, then the file that it has written, in the repository's root.
    command = raised.value.fix.split("'")[1].split()
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    own = tmp_path / FILE
    shutil.copy(locked.folder / FILE, own)
    write(locked.folder, tmp_path)
    locked.init()
    (hash_of_ours,) = read(own)["registry.terraform.io/hashicorp/aws"].hashes - read(SHIPPED)["registry.terraform.io/hashicorp/aws"].hashes
    own.write_text(own.read_text().replace(hash_of_ours, f"h1:{'A' * 43}="))
    write(locked.folder, tmp_path)
    with pytest.raises(ProviderNotLocked):
        locked.init()


def test_a_package_that_was_changed_after_it_was_installed_is_refused(locked: Terraform, tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    subprocess.run(
        ["terraform", f"-chdir={locked.folder}", "providers", "lock", f"-fs-mirror={mirror}", f"-platform={system()}"],
        check=True,
        capture_output=True,
        timeout=60,
    )
    locked.init()
    (package,) = mirror.rglob("terraform-provider-aws_*")
    package.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(ProviderNotLocked):
        locked.init()
