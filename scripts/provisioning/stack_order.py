"""The order of an environment's stacks: AWS before charts, each stack after those that it needs, the others at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from penstock.scripts.provisioning.dependency_order import Done, in_order, reverse
from penstock.scripts.provisioning.stacks import Stack
from penstock.scripts.provisioning.terraform import Terraform, stop_all
from penstock.sizing.errors import PenstockError, raise_all


class StackOrder:
    """The order of stacks.

    Args:
        stacks: stacks in dependency order, with all their dependencies.
    """

    def __init__(self, stacks: Iterable[Stack]) -> None:
        self.stacks: Sequence[Stack] = sorted(stacks, key=lambda stack: stack.on_kubernetes)

    def planned_after(self) -> dict[str, tuple[str, ...]]:
        """Stack -> those that are planned before it: whose outputs it uses; for charts, which need the API server, all of AWS."""
        return {stack.name: (*self._aws_first(stack), *stack.inputs) for stack in self.stacks}

    def applied_after(self) -> dict[str, tuple[str, ...]]:
        """Stack -> those that are applied before it: its dependencies; for charts, whose pods use AWS, all of AWS."""
        return {stack.name: (*self._aws_first(stack), *stack.dependencies) for stack in self.stacks}

    def destroyed_after(self) -> dict[str, tuple[str, ...]]:
        """Stack -> those that are destroyed before it: whatever is applied after it."""
        return reverse(self.applied_after())

    def each(self, after: Mapping[str, Sequence[str]], do: Callable[[Stack], Done], terraform: Mapping[str, Terraform]) -> dict[str, Done]:
        """Does something with each stack, once it is done with those that it comes after.

        Args:
            after: one of the orders above.
            do: called with a stack, in a thread. After a failure the stacks that come after the failed one are left out, no others.
            terraform: stack -> the Terraform whose calls are stopped if this thread is interrupted.

        Raises:
            PenstockError: the errors of all stacks that failed.
        """
        by_name = {stack.name: stack for stack in self.stacks}
        failed: dict[str, PenstockError] = {}

        def guarded(name: str) -> Done:
            try:
                return do(by_name[name])
            except PenstockError as error:
                failed[name] = error
                raise

        try:
            return in_order(after, guarded, interrupt=lambda: stop_all(terraform.values()))
        except PenstockError:
            raise_all(error for name in after if name in failed for error in failed[name].errors)
            raise

    def _aws_first(self, stack: Stack) -> Iterable[str]:
        return (other.name for other in self.stacks if stack.on_kubernetes and not other.on_kubernetes)
