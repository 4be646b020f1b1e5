"""All stacks on LocalStack and moto, destroyed: nothing is left in any state."""

from __future__ import annotations

import pytest

from tests.localstack.conftest import AppliedStacks, everything, in_order, mixture

__all__ = ["everything", "mixture"]

# LocalStack's environment is made and all stacks are applied before it begins.
pytestmark = pytest.mark.timeout(2400)


def test_what_was_applied_is_destroyed_in_the_order_of_its_dependencies(everything: AppliedStacks) -> None:
    before = {name: stack.dependencies for name, stack in everything.stacks.items()}
    after = {name: tuple(other for other, needs in before.items() if name in needs) for name in before}
    destroyed = in_order(after, lambda name: everything.terraform[name].destroy())
    for name, done in destroyed.items():
        assert done.count("delete") == everything.applied[name].count("create"), name
        assert everything.terraform[name].resources() == [], name
