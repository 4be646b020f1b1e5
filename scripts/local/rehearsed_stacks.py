"""Stacks that are applied, planned again and destroyed, those that don't wait for each other at the same time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from penstock.scripts.provisioning import planned_changes
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.provisioning.dependency_order import in_order, reverse
from penstock.scripts.provisioning.deployment import PLAN_FILE
from penstock.scripts.provisioning.destruction import EMPTYING, unprotect
from penstock.scripts.provisioning.planned_changes import StackChanges
from penstock.scripts.provisioning.stacks import Stack
from penstock.scripts.provisioning.state_resource import StateResource
from penstock.scripts.provisioning.terraform import Applied, Terraform, stop_all

Progress = Callable[[str], None]


class RehearsedStacks:
    """The stacks of an environment on an AWS that has nothing of them.

    Args:
        stacks: them, synthesized.
        access: that AWS.
        progress: called with a line for each finished step, in several threads.
    """

    def __init__(self, stacks: Sequence[Stack], access: AwsAccess, progress: Progress = lambda line: None) -> None:
        self.stacks: Mapping[str, Stack] = {stack.name: stack for stack in stacks}
        self.applied: dict[str, Applied] = {}
        self._access = access
        self._progress = progress
        self._terraform = {stack.name: Terraform(stack.folder, environment=access.variables) for stack in stacks}

    def resources(self, stack: str) -> list[StateResource]:
        """The resources in the state of a stack."""
        return self._terraform[stack].resources()

    @property
    def after(self) -> Mapping[str, tuple[str, ...]]:
        """Stack -> the stacks that it comes after."""
        return {name: stack.dependencies for name, stack in self.stacks.items()}

    def apply(self) -> Mapping[str, Applied]:
        """Applies all stacks.

        Raises:
            PenstockError: whatever is wrong with the environment, this machine, the plan or the apply.
        """
        self.init()
        return in_order(self.after, self.apply_stack)

    def plan(self) -> list[StackChanges]:
        """Plans all stacks; those that have changes.

        Raises:
            PenstockError: errors of Terraform.
        """
        done = in_order(dict.fromkeys(self.stacks, ()), self.plan_stack)
        return [changes for changes in done.values() if changes is not None]

    def destroy(self) -> Mapping[str, Applied]:
        """Destroys all stacks with all that they hold, also what is protected.

        Raises:
            PenstockError: errors of Terraform or the emulators.
        """
        return in_order(reverse(self.after), self.destroy_stack)

    def stop(self) -> None:
        """Stops all of Terraform's calls, which then raise RUN-009, and waits for their end. No further ones are accepted."""
        stop_all(self._terraform.values())

    def init(self) -> None:
        """Looks for the provider, once, before several stacks look for it at a time.

        Raises:
            PenstockError: errors of Terraform.
        """
        next(iter(self._terraform.values())).init()

    def apply_stack(self, name: str) -> Applied:
        """Applies one stack.

        Raises:
            PenstockError: errors of Terraform.
        """
        applied = self._terraform[name].apply()
        self.applied[name] = applied
        self._progress(f"{name}: {applied}")
        return applied

    def plan_stack(self, name: str) -> StackChanges | None:
        """Plans one stack; None if it has no changes.

        Raises:
            PenstockError: errors of Terraform.
        """
        terraform = self._terraform[name]
        # To read a plan Terraform starts the provider once more, which takes most of its time.
        differs = terraform.plan()
        changes = planned_changes.read(name, terraform.plan_to(self.stacks[name].folder / PLAN_FILE)) if differs else None
        self._progress(f"{name}: {changes or 'nothing to do'} in a second plan")
        return changes

    def destroy_stack(self, name: str) -> Applied:
        """Destroys one stack with all that it holds.

        Raises:
            PenstockError: errors of Terraform or the emulators.
        """
        for one in self.resources(name):
            if one.type in EMPTYING:
                EMPTYING[one.type](self._access, str(one.whole))
        unprotect(self.stacks[name])
        destroyed = self._terraform[name].destroy()
        self._progress(f"{name}: {destroyed}")
        return destroyed
