"""The AWS stacks of an environment on emulators, for tests: applied, planned again without changes, and destroyed at the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from penstock.infra.environment import Environment
from penstock.scripts.emulation.localstack import ENDPOINT_VARIABLE
from penstock.scripts.local.emulated_stacks import EmulatedStacks
from penstock.scripts.planning.app_path import with_app_path
from penstock.scripts.provisioning.planned_changes import StackChanges

MOTO, LOCALSTACK = "moto", "localstack"


class AppliedStacks:
    """The applied stacks of an environment.

    Args:
        stacks: them, on emulators that run.
    """

    def __init__(self, stacks: EmulatedStacks) -> None:
        self._stacks = stacks

    @property
    def environment(self) -> Environment:
        """The environment, with the emulators' endpoints."""
        return self._stacks.environment

    @property
    def outputs(self) -> Mapping[str, Mapping[str, Any]]:
        """Stack -> output -> value, as of ``penstock deploy -o json``."""
        return {
            name: {output: value for output, value in applied.outputs.items() if not output.startswith("cross-stack-")}
            for name, applied in self._stacks.stacks.applied.items()
        }

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables of Terraform: dummy keys of the environment's account, and its region. Endpoints are not among them."""
        return self._stacks.access.variables

    def client(self, service: str) -> Any:
        """A boto3 client of a service, such as ``s3``, on the emulator that has it."""
        return self._stacks.access.client(service)

    def resources(self, stack: str) -> dict[str, Mapping[str, Any]]:
        """Address -> attributes, of what Terraform's state of a stack has."""
        return {one.address: one.values for one in self._stacks.stacks.resources(stack)}


class AwsStacks(Protocol):
    """The type of the fixture ``aws_stacks``."""

    def __call__(self, environment: str = ..., *, app_path: Sequence[str | Path] = ()) -> AppliedStacks:
        """The stacks of an environment, applied by the first call with it.

        Args:
            environment: name or path of the environment.
            app_path: folders of its apps, besides its ``appPath``.

        Raises:
            AssertionError: a second plan has changes; the message has them.
            PenstockError: whatever is wrong with the environment, this machine, LocalStack or the apply.
        """


def emulator(asked: str | None) -> str:
    """Where stacks are applied.

    Args:
        asked: ``moto`` or ``localstack``; None: LocalStack if LOCALSTACK_ENDPOINT is set.
    """
    return asked or (LOCALSTACK if os.environ.get(ENDPOINT_VARIABLE) else MOTO)


@contextmanager
def applied(
    environment: Environment, folder: Path, *, localstack: bool, app_path: Sequence[Path] = (), progress: Callable[[str], None]
) -> Iterator[AppliedStacks]:
    """The stacks of an environment, while the context lasts.

    Args:
        environment: the environment.
        folder: an empty folder.
        localstack: whether LocalStack takes part.
        app_path: folders of its apps, besides its ``appPath``.
        progress: called with a line for each finished step.

    Raises:
        AssertionError: a second plan has changes, or a destroy leaves something; only if nothing else has failed.
        PenstockError: whatever is wrong with the environment, this machine, LocalStack or the apply.
    """
    with ExitStack() as held:
        emulated = held.enter_context(
            EmulatedStacks(with_app_path(environment, app_path), folder=folder, localstack=localstack, progress=progress)
        )
        stacks = emulated.stacks
        stacks.apply()
        refuse_changes(stacks.plan())
        yield AppliedStacks(emulated)
        stacks.destroy()
        refuse_remains({name: [one.address for one in stacks.resources(name)] for name in stacks.stacks})


def refuse_changes(differing: Iterable[StackChanges]) -> None:
    """Fails if a plan after an apply has changes.

    Args:
        differing: the stacks that have some.

    Raises:
        AssertionError: each change, with both sides of the attributes that differ.
    """
    lines = [line for stack in differing for line in _lines(stack)]
    if lines:
        raise AssertionError("\n".join(["a second plan has changes:", *lines]))


def refuse_remains(remains: Mapping[str, Sequence[str]]) -> None:
    """Fails if a destroy has left something.

    Args:
        remains: stack -> addresses.

    Raises:
        AssertionError: it has.
    """
    lines = [f"  {stack}/{address}" for stack, addresses in remains.items() for address in addresses]
    if lines:
        raise AssertionError("\n".join(["the destroy has left:", *lines]))


def _lines(stack: StackChanges) -> Iterator[str]:
    for change in stack.changes:
        yield f"  {change.action} {stack.stack}/{change.address}"
        before, after = change.before or {}, change.after or {}
        yield from (
            f"    {name}: {before.get(name)!r} -> {after.get(name)!r}"
            for name in sorted({*before, *after})
            if change.action == "change" and before.get(name) != after.get(name)
        )
    yield from (f"  import {stack.stack}/{address}" for address in sorted(stack.imported))
    if stack.changes_outputs and not stack.changes:
        yield f"  change {stack.stack}: only outputs"
