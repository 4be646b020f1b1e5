"""Deploys of small stacks to the emulated AWS, for tests of the tiers emulated and chaos."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.environment import Environment
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.errors import ProviderNotFound, TerraformFailed
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning import state_bucket
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.provisioning.deployment import Deployment
from penstock.scripts.provisioning.stacks import Stack
from penstock.scripts.provisioning.terraform import Terraform
from penstock.sizing.errors import PenstockError
from tests.emulated.small_stacks import BucketStack, PlainStacks, environment


@pytest.fixture
def own(aws: EmulatedAws, request: pytest.FixtureRequest) -> Environment:
    """An environment of the test's own, whose bucket of the state is there."""
    if shutil.which("terraform") is None:
        pytest.skip("terraform is not in PATH")
    made = environment(aws, f"dep-{zlib.crc32(request.node.name.encode())}")
    state_bucket.bootstrap(AwsAccess(made))
    return made


@pytest.fixture
def plain(own: Environment, tmp_path: Path) -> PlainStacks:
    """Two stacks without a provider."""
    return PlainStacks(own, tmp_path / "stacks")


@pytest.fixture
def small(own: Environment, tmp_path: Path) -> BucketStack:
    """A stack with buckets and a key."""
    stacks = BucketStack(own, tmp_path / "stacks")
    try:
        Terraform(stacks.written()[0].folder, environment=AwsAccess(own).variables).init()
    except ProviderNotFound as error:
        pytest.skip(error.render())
    return stacks


def deployment(environment: Environment, stacks: list[Stack], **options: Any) -> Deployment:
    return Deployment(stacks, AwsAccess(environment), Steps(), **options)


def blocking(pipe: Path, *after: str) -> dict[str, Any]:
    """A resource that says that it has begun, and then never ends."""
    provisioner = {"local-exec": {"command": f"exec 9>{pipe}; echo begun >&9; sleep 1000", "quiet": True}}
    return {"slow": {"provisioner": provisioner, "depends_on": list(after)}}


def _terraform_below(pid: int) -> int:
    """The process id of Terraform below a process of ours."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,comm="], capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [(int(row.split()[0]), int(row.split()[1]), row.split()[2]) for row in listed]
    below = {pid}
    while more := {child for child, parent, _ in rows if parent in below} - below:
        below |= more
    (terraform_below,) = [child for child, _, command in rows if child in below and command == "terraform"]
    return terraform_below


@contextmanager
def applying(deployment: Deployment, pipe: Path) -> Iterator[None]:
    """An apply that is in the midst of it; it fails in the end."""
    raised: list[BaseException] = []

    def apply() -> None:
        try:
            deployment.apply()
        except PenstockError as error:
            raised.append(error)

    thread = threading.Thread(target=apply)
    thread.start()
    with pipe.open("rb") as begun:
        assert begun.readline() == b"begun\n"
        try:
            yield
        finally:
            # Nobody waits for what sleeps.
            os.kill(_terraform_below(os.getpid()), signal.SIGKILL)
            thread.join()
    assert [type(error) for error in raised] == [TerraformFailed]


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"
