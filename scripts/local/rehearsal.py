"""A rehearsal: an environment's AWS stacks are applied to emulators, planned again, which must be empty, and destroyed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from threading import Lock

from penstock.scripts.emulation.errors import StacksLeft
from penstock.scripts.errors import StacksDiffer, TerraformStopped
from penstock.scripts.local.rehearsed_stacks import RehearsedStacks
from penstock.scripts.provisioning.dependency_order import in_order, reverse
from penstock.scripts.render.rehearsal_stages import Case, Outcome, Stage
from penstock.sizing.errors import PenstockError


class Rehearsal:
    """The rehearsal of an environment.

    Args:
        stacks: the stacks of an environment, on emulators that have nothing of it.
    """

    def __init__(self, stacks: RehearsedStacks) -> None:
        self._stacks = stacks
        self._one_at_a_time = Lock()
        self._done: dict[tuple[str, Stage], Case] = {}
        self.errors: list[PenstockError] = []

    @property
    def cases(self) -> list[Case]:
        """Every stage of every stack, in order; also of a rehearsal that has failed or was interrupted."""
        left_out = Outcome.LEFT_OUT
        return [
            self._done.get((name, stage), Case(stack=name, stage=stage, outcome=left_out))
            for stage in Stage
            for name in self._stacks.stacks
        ]

    def run(self) -> None:
        """Goes through the stages, up to the first in which a stack fails; the faults are in `errors`.

        Raises:
            PenstockError: the environment can't be synthesized, or Terraform can't begin.
            KeyboardInterrupt: once Terraform has ended.
        """
        self._stacks.init()
        after = self._stacks.after
        stages: Sequence[tuple[Stage, Mapping[str, Sequence[str]], Callable[[str], int]]] = (
            (Stage.APPLY, after, lambda name: self._stacks.apply_stack(name).count("create")),
            (Stage.PLAN, dict.fromkeys(after, ()), self._plan),
            (Stage.DESTROY, reverse(after), self._destroy),
        )
        for stage, order, do in stages:
            if not self._passes(stage, order, do):
                return

    def _passes(self, stage: Stage, order: Mapping[str, Sequence[str]], do: Callable[[str], int]) -> bool:
        try:
            in_order(order, lambda name: self._take(name, stage, do), interrupt=self._stacks.stop)
        except PenstockError:
            # What depends on the stack is left out; the error is kept with its stack.
            return False
        return True

    def _take(self, name: str, stage: Stage, do: Callable[[str], int]) -> None:
        began_s = time.monotonic()
        try:
            resources = do(name)
        except TerraformStopped:
            raise
        except PenstockError as error:
            with self._one_at_a_time:
                self.errors += error.errors
            self._note(name, stage, Outcome.FAILED, began_s, message="\n\n".join(fault.render() for fault in error.errors))
            raise
        self._note(name, stage, Outcome.PASSED, began_s, resources=resources)

    def _note(self, name: str, stage: Stage, outcome: Outcome, began_s: float, *, resources: int = 0, message: str = "") -> None:
        seconds = round(time.monotonic() - began_s, 1)
        case = Case(stack=name, stage=stage, outcome=outcome, seconds=seconds, resources=resources, message=message)
        with self._one_at_a_time:
            self._done[name, stage] = case

    def _plan(self, name: str) -> int:
        changes = self._stacks.plan_stack(name)
        if changes is None:
            return 0
        given = "\n".join([str(changes), *(f"{change.action} {change.address}" for change in changes.changes)])
        need = "no changes right after an apply"
        raise StacksDiffer(path=name, given=given, need=need, fix="set the attributes as AWS returns them, or leave them out of the stack")

    def _destroy(self, name: str) -> int:
        destroyed = self._stacks.destroy_stack(name).count("delete")
        if left := [one.address for one in self._stacks.resources(name)]:
            raise StacksLeft(
                path=name, given=", ".join(left), need="nothing in Terraform's state", fix="see terraform-destroy.log of the stack"
            )
        return destroyed
