from __future__ import annotations

import pytest

from penstock.infra.short_names import shortened


@pytest.mark.parametrize("name", ["penstock-production-job-clicks", "a" * 64])
def test_a_name_that_fits_stays(name: str) -> None:
    assert shortened(name, 64) == name


def test_a_name_that_is_too_long_is_cut_and_stays_one_of_a_kind() -> None:
    one, two = (shortened(f"penstock-production-job-{'x' * 44}{last}", 64) for last in "ab")
    assert len(one) == len(two) == 64
    assert one != two
    assert one.startswith("penstock-production-job-xxx")
    assert shortened(f"penstock-production-job-{'x' * 44}a", 64) == one


def test_no_two_hyphens_meet_at_the_cut() -> None:
    assert "--" not in shortened("a" * 50 + "-----" + "b" * 20, 64)
