from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import boto3
import pytest

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.emulation.localstack import ENDPOINT_VARIABLE, LocalStack
from penstock.scripts.emulation.localstack_python import find
from penstock.scripts.errors import ProviderNotFound
from penstock.scripts.provisioning.stacks import Stack, synthesized
from penstock.scripts.provisioning.terraform import Applied, Terraform

# Stacks that do not wait for each other are applied together: most of what an apply takes is the provider's own waiting.
AT_A_TIME = 4

Done = TypeVar("Done")


@dataclass(frozen=True)
class Mixture:
    """An AWS of two emulators: what LocalStack's free edition has is there, the rest is moto's."""

    localstack: LocalStack
    moto: EmulatedAws

    @property
    def environment(self) -> Environment:
        return load("local").at(self.moto.endpoint, self.localstack.services)

    def client(self, service: str) -> Any:
        make: Any = boto3.client
        keys = {"aws_access_key_id": "emulated", "aws_secret_access_key": "emulated"}
        return make(service, endpoint_url=self.localstack.services.get(service, self.moto.endpoint), region_name=self.moto.region, **keys)


@dataclass(frozen=True)
class AppliedStacks:
    """All the AWS stacks of an environment, applied."""

    mixture: Mixture
    stacks: Mapping[str, Stack]
    terraform: Mapping[str, Terraform]
    applied: Mapping[str, Applied]


@pytest.fixture(scope="session")
def mixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mixture]:
    if not os.environ.get(ENDPOINT_VARIABLE) and find() is None:
        pytest.skip("there is no Python 3.13, which LocalStack runs on, and LOCALSTACK_ENDPOINT names none that runs")
    folder = tmp_path_factory.mktemp("localstack")
    with (
        LocalStack(folder=folder / "data", log=folder / "localstack.log", progress=print) as localstack,
        EmulatedAws(log=folder / "moto.log", neighbours=localstack.endpoint) as moto,
    ):
        yield Mixture(localstack, moto)


@pytest.fixture(scope="session")
def everything(mixture: Mixture, tmp_path_factory: pytest.TempPathFactory) -> AppliedStacks:
    """Applied once for all tests; the emulators take it with them. That it can be destroyed is a test of the slow tier."""
    for tool in ("terraform", "node"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not in PATH")
    folder = tmp_path_factory.mktemp("stacks")
    variables = mixture.moto.environment(os.environ)
    stacks = {stack.name: stack for stack in synthesized(mixture.environment, folder, state=folder / "state", base=variables)}
    terraform = {name: Terraform(stack.folder, environment=variables) for name, stack in stacks.items()}
    try:
        next(iter(terraform.values())).init()
    except ProviderNotFound as error:
        pytest.skip(error.render())
    before = {name: stack.dependencies for name, stack in stacks.items()}
    applied = in_order(before, lambda name: terraform[name].apply())
    return AppliedStacks(mixture, stacks, terraform, applied)


def in_order(after: Mapping[str, Sequence[str]], do: Callable[[str], Done]) -> dict[str, Done]:
    """Does something with each, once it is done with those that it comes after; some at the same time."""
    futures: dict[str, Future[Done]] = {}

    def wait_and_do(name: str) -> Done:
        for other in after[name]:
            futures[other].result()
        return do(name)

    # Whoever waits for another holds a thread: those without anything to wait for are asked first, and finish in any case.
    names = sorted(after, key=lambda name: _depth(after, name))
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        for name in names:
            futures[name] = pool.submit(wait_and_do, name)
        return {name: future.result() for name, future in futures.items()}


def _depth(after: Mapping[str, Sequence[str]], name: str) -> int:
    return 1 + max((_depth(after, other) for other in after[name]), default=0)
