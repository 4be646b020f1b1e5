"""``penstock destroy`` on stacks that need each other, and on stacks that don't."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.scripts.progress import Steps
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.provisioning.destruction import Destruction
from penstock.scripts.provisioning.stacks import Stack
from penstock.sizing.errors import Faults
from tests.emulated.deploying import deployment, own, pipe, plain
from tests.emulated.small_stacks import PlainStacks

pytestmark = pytest.mark.emulated
__all__ = ["own", "pipe", "plain"]


def _ends_with(command: str) -> dict[str, Any]:
    """A resource whose destruction runs a command, and fails with it."""
    return {"command": {"provisioner": {"local-exec": {"command": command, "when": "destroy"}}}}


def _deployed(plain: PlainStacks, stacks: list[Stack]) -> Destruction:
    before = deployment(plain.environment, stacks)
    before.plan()
    before.apply()
    return Destruction(stacks, AwsAccess(plain.environment), Steps(), limit_s=120)


def test_stacks_that_do_not_need_each_other_are_destroyed_at_the_same_time(plain: PlainStacks, pipe: Path) -> None:
    # Each ends when the other has opened the pipe, too.
    writer, reader = f"echo destroyed > {pipe}", f"read line < {pipe} && test $line = destroyed"
    both = _deployed(plain, plain.independent({"writer": _ends_with(writer), "reader": _ends_with(reader)}))
    done = both.destroy(both.destroy_actions())
    assert [(one.stack, one.applied.count("delete") if one.applied else 0) for one in done] == [("reader", 1), ("writer", 1)]


def test_after_a_failure_what_the_failed_one_needs_is_left_and_the_rest_is_destroyed_and_every_error_is_shown(
    plain: PlainStacks, tmp_path: Path
) -> None:
    mended = tmp_path / "mended"
    plain.reader = _ends_with(f"test -e {mended} || (echo no reader; exit 1)")
    store, reader = plain.written()
    more = plain.independent({"other": _ends_with("true"), "broken": _ends_with(f"test -e {mended} || (echo no broken; exit 1)")})
    stacks = [store, reader, *more]
    failing = _deployed(plain, stacks)
    with pytest.raises(Faults) as raised:
        failing.destroy(failing.destroy_actions())
    assert [word for word in ("no reader", "no broken") if word in raised.value.render()] == ["no reader", "no broken"]
    again = Destruction(stacks, AwsAccess(plain.environment), Steps(), limit_s=120)
    left = again.destroy_actions()
    # What the reader took from the store is gone, its command is not.
    assert {action.name: len(action.destroyed) for action in left} == {"store": 1, "reader": 1, "other": 0, "broken": 1}
    mended.touch()
    again.destroy(left)
    assert [action.destroyed for action in again.destroy_actions()] == [(), (), (), ()]
