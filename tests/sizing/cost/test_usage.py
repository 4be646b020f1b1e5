from __future__ import annotations

import pytest

from penstock.sizing.cost.month import HOURS_PER_MONTH, gib_per_month, per_month
from penstock.sizing.cost.usage import crossing_gib_per_month, crossing_share


def test_a_month_has_730_hours() -> None:
    assert HOURS_PER_MONTH == 730
    assert per_month(24) == 730
    assert gib_per_month(1) == pytest.approx(730 * 3600 / 1024)


@pytest.mark.parametrize(("zones", "share"), [(1, 0), (2, 1 / 2), (3, 2 / 3)])
def test_traffic_spread_over_zones_mostly_crosses_them(zones: int, share: float) -> None:
    assert crossing_share(zones) == pytest.approx(share)
    assert crossing_gib_per_month(10, zones) == pytest.approx(gib_per_month(10) * share)


def test_a_consumer_that_fetches_from_its_own_zone_crosses_none() -> None:
    assert crossing_gib_per_month(100, 3, rack_aware=True) == 0


def test_no_zone_at_all_is_a_fault_of_the_caller() -> None:
    with pytest.raises(ValueError, match="zones = 0"):
        crossing_share(0)
