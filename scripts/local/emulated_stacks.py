"""An environment's AWS stacks on emulators, for tests: applied, planned again and destroyed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

from penstock.infra.deployable import deployable_plans
from penstock.infra.environment import Environment
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.emulation.localstack import LocalStack
from penstock.scripts.local.emulated_environment import carried
from penstock.scripts.local.existing_account import prepared
from penstock.scripts.provisioning import planned_changes
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.provisioning.dependency_order import in_order, reverse
from penstock.scripts.provisioning.deployment import PLAN_FILE
from penstock.scripts.provisioning.destruction import EMPTYING, unprotect
from penstock.scripts.provisioning.planned_changes import StackChanges
from penstock.scripts.provisioning.stacks import Stack, synthesized
from penstock.scripts.provisioning.state_resource import StateResource
from penstock.scripts.provisioning.terraform import Applied, Terraform

Progress = Callable[[str], None]


@dataclass(frozen=True)
class _Synthesized:
    """The stacks by name, and Terraform of each."""

    stacks: Mapping[str, Stack]
    terraform: Mapping[str, Terraform]

    @property
    def after(self) -> dict[str, tuple[str, ...]]:
        return {name: stack.dependencies for name, stack in self.stacks.items()}


class EmulatedStacks:
    """The AWS stacks of an environment, on emulators that end with this object. Terraform's state is in local files.

    Args:
        environment: the environment; its endpoints are replaced by the emulators'.
        folder: an empty folder for data, logs, stacks and states.
        localstack: whether what LocalStack's free edition has is LocalStack's; the rest is moto's.
        progress: called with a line for each finished step, in several threads.
    """

    def __init__(self, environment: Environment, *, folder: Path, localstack: bool, progress: Progress = lambda line: None) -> None:
        self._asked = carried(environment).with_spec(state=None)
        self._folder = folder
        self._with_localstack = localstack
        self._progress = progress
        self._held = ExitStack()
        self.applied: dict[str, Applied] = {}

    def __enter__(self) -> EmulatedStacks:
        try:
            self._start()
        except BaseException:
            self._held.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._held.close()

    def _start(self) -> None:
        spec = self._asked.spec
        self.localstack: LocalStack | None = None
        services: dict[str, str] = {}
        if self._with_localstack:
            data, log = self._folder / "localstack", self._folder / "localstack.log"
            self.localstack = self._held.enter_context(LocalStack(folder=data, log=log, progress=self._progress))
            services = self.localstack.services
        moto = EmulatedAws(log=self._folder / "aws.log", account=spec.account, region=spec.region, neighbours=services)
        self.moto = self._held.enter_context(moto)
        self.environment = prepared(self._asked.at(self.moto.endpoint, services))
        self.access = AwsAccess(self.environment)

    @cached_property
    def _synthesized(self) -> _Synthesized:
        folder, planned = self._folder / "stacks", deployable_plans(self.environment)
        stacks = synthesized(self.environment, folder, planned=planned, state=self._folder / "state", base=_without_aws(os.environ))
        terraform = {stack.name: Terraform(stack.folder, environment=self.access.variables) for stack in stacks}
        return _Synthesized({stack.name: stack for stack in stacks}, terraform)

    @property
    def stacks(self) -> Mapping[str, Stack]:
        """The synthesized stacks by name."""
        return self._synthesized.stacks

    @property
    def outputs(self) -> dict[str, dict[str, Any]]:
        """Stack -> output -> value, of the applied stacks, without cdktf's cross-stack outputs."""
        return {
            name: {output: value for output, value in applied.outputs.items() if not output.startswith("cross-stack-")}
            for name, applied in self.applied.items()
        }

    def resources(self, stack: str) -> list[StateResource]:
        """The resources in the state of a stack."""
        return self._synthesized.terraform[stack].resources()

    def apply(self) -> Mapping[str, Applied]:
        """Applies all stacks.

        Raises:
            PenstockError: whatever is wrong with the environment, this machine, the plan or the apply.
        """
        made = self._synthesized
        # Once, before several look for the provider at a time.
        next(iter(made.terraform.values())).init()

        def apply(name: str) -> Applied:
            applied = made.terraform[name].apply()
            self._progress(f"{name}: {applied}")
            return applied

        self.applied = in_order(made.after, apply)
        return self.applied

    def plan(self) -> list[StackChanges]:
        """Plans all stacks; those that have changes.

        Raises:
            PenstockError: errors of Terraform.
        """
        made = self._synthesized

        def plan(name: str) -> StackChanges | None:
            terraform = made.terraform[name]
            # To read a plan Terraform starts the provider once more, which takes most of its time.
            differs = terraform.plan()
            changes = planned_changes.read(name, terraform.plan_to(made.stacks[name].folder / PLAN_FILE)) if differs else None
            self._progress(f"{name}: {changes or 'nothing to do'} in a second plan")
            return changes

        done = in_order(dict.fromkeys(made.stacks, ()), plan)
        return [changes for changes in done.values() if changes is not None]

    def destroy(self) -> Mapping[str, Applied]:
        """Destroys all stacks with all that they hold, also what is protected.

        Raises:
            PenstockError: errors of Terraform or the emulators.
        """
        made = self._synthesized

        def destroy(name: str) -> Applied:
            for one in self.resources(name):
                if one.type in EMPTYING:
                    EMPTYING[one.type](self.access, str(one.whole))
            unprotect(made.stacks[name])
            destroyed = made.terraform[name].destroy()
            self._progress(f"{name}: {destroyed}")
            return destroyed

        return in_order(reverse(made.after), destroy)


def _without_aws(base: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in base.items() if not name.startswith("AWS_")}
