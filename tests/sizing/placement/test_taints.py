"""Taints and tolerations."""

from __future__ import annotations

import pytest

from penstock.sizing.placement.taints import Taint, Toleration, not_tolerated

DRIVER = Taint("role", "driver", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        (Toleration("role", "Equal", "driver", "NoSchedule"), True),
        (Toleration("role", "Equal", "driver", ""), True),
        (Toleration("role", "Equal", "executor", "NoSchedule"), False),
        (Toleration("role", "Equal", "", ""), False),
        (Toleration("role", "Exists", "", ""), True),
        (Toleration("role", "Exists", "", "NoExecute"), False),
        (Toleration("", "Exists", "", ""), True),
        (Toleration("other", "Exists", "", ""), False),
    ],
)
def test_a_toleration_covers_a_taint_by_key_value_and_effect(toleration: Toleration, covers: bool) -> None:
    assert toleration.tolerates(DRIVER) is covers
    assert (not_tolerated([DRIVER], [toleration]) is None) is covers


def test_every_taint_must_be_tolerated_and_the_first_that_is_not_is_named() -> None:
    other = Taint("gpu", "", "NoExecute")
    assert not_tolerated([DRIVER, other], [Toleration("role", "Exists", "", "")]) == other
    assert str(other) == "gpu:NoExecute"
    assert str(DRIVER) == "role=driver:NoSchedule"
    assert not_tolerated([], []) is None
