"""cdktf itself, as a platform team calls it: stacks deployed to an emulated AWS of their own, planned again and destroyed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import boto3
import pytest

from penstock.infra.app import stack_names
from penstock.infra.environment import Environment
from penstock.infra.environment_file import ENVIRONMENT_VARIABLE, load
from penstock.infra.state import STATE_VARIABLE
from penstock.scripts import layout
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.errors import NotSetUp
from penstock.scripts.provisioning import provider_mirror
from penstock.scripts.provisioning.stacks import Stack
from penstock.scripts.provisioning.terraform import Terraform

# What all stacks may take on a busy machine of two cores; alone they take a third of it.
LIMIT_S = 900


class Deployed(NamedTuple):
    """Stacks of the local environment, on an emulated AWS of their own."""

    aws: EmulatedAws
    environment: Environment
    folder: Path
    variables: dict[str, str]
    names: tuple[str, ...]

    def states(self) -> set[str]:
        """The stacks that Terraform has a state of."""
        return {path.stem for path in (self.folder / "state" / "local").glob("*.tfstate")}

    def differing(self) -> list[str]:
        """The stacks that a second plan would change."""
        stacks = [Stack(name, self.folder / "out" / "stacks" / name, ()) for name in self.names]
        return [stack.name for stack in stacks if Terraform(stack.folder, environment=self.variables).plan()]

    def destroy(self) -> None:
        """Destroys them again, with cdktf."""
        # Stacks that depend on these, and were not deployed, are not waited for.
        ran = _cdktf(self.folder, self.variables, "destroy", *self.names, "--auto-approve", "--ignore-missing-stack-dependencies")
        assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-4000:]

    def client(self, service: str) -> Any:
        """A client of the emulated AWS."""
        keys = {"aws_access_key_id": "emulated", "aws_secret_access_key": "emulated"}
        return boto3.client(service, endpoint_url=self.aws.endpoint, region_name="us-east-1", **keys)  # type: ignore[call-overload]


def _cdktf(folder: Path, variables: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [layout.cdktf(), *words, "--output", str(folder / "out")],
        cwd=layout.ROOT,
        env=variables,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def _variables(aws: EmulatedAws, environment: Environment, folder: Path) -> dict[str, str]:
    file = folder / "environment.yaml"
    file.write_text(environment.text(), encoding="utf-8")
    base = aws.environment(os.environ)
    made = {**base, ENVIRONMENT_VARIABLE: str(file), STATE_VARIABLE: str(folder / "state"), "CHECKPOINT_DISABLE": "1", "CI": "1"}
    mirror = provider_mirror.find("5.100.0", base)
    if mirror.configuration is not None:
        configuration = folder / "terraform.rc"
        configuration.write_text(mirror.configuration, encoding="utf-8")
        made[provider_mirror.CONFIGURATION_VARIABLE] = str(configuration)
    return made


@contextmanager
def deployed(folder: Path, only: tuple[str, ...] = ()) -> Iterator[Deployed]:
    """`cdktf deploy` of some stacks, of all by default; what is missing for that skips the test."""
    try:
        layout.cdktf()
    except NotSetUp as error:
        pytest.skip(error.render())
    if shutil.which("terraform") is None:
        pytest.skip("terraform is not in PATH")
    with EmulatedAws(log=folder / "aws.log", brokers="127.0.0.1:9092") as aws:
        environment = load("local").at(aws.endpoint)
        variables = _variables(aws, environment, folder)
        names = only or tuple(stack_names(environment))
        ran = _cdktf(folder, variables, "deploy", *names, "--auto-approve", "--skip-provider-lock")
        assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-4000:]
        yield Deployed(aws, environment, folder, variables, names)
