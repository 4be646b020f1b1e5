"""Rules on versions, on fixed dates."""

from __future__ import annotations

import pytest

from penstock.sizing.lint.durations import day_number
from penstock.sizing.lint.versions import eks_versions
from tests.sizing.lint.worlds import found, severities, subject, versions


@pytest.mark.parametrize(
    ("today", "rule"), [("2026-09-02", ""), ("2026-09-03", "LINT-061"), ("2026-12-02", "LINT-061"), ("2026-12-03", "LINT-060")]
)
def test_support_ends_on_the_day_that_eks_says(today: str, rule: str) -> None:
    assert [one for one in ("LINT-060", "LINT-061") if found(one, versions("1.34", today))] == ([rule] if rule else [])


def test_the_days_left_and_a_version_with_longer_support_are_reported() -> None:
    (finding,) = found("LINT-061", versions("1.34"))
    assert finding.need == "1.35, in standard support until 2027-03-27; standard support of 1.34 ends on 2026-12-02, in 11 days"


def test_extended_support_is_reported_with_its_price() -> None:
    (finding,) = found("LINT-060", versions("1.33"))
    assert finding.severity == "error"
    assert "it ended on 2026-07-29, extended support costs 0.60 $ an hour instead of 0.10 $ until 2027-07-29" in finding.need


def test_extended_support_that_is_wanted_is_a_warning_until_it_ends() -> None:
    assert severities("LINT-060", versions("1.33", extended_support=True)) == ["warning"]
    assert severities("LINT-060", versions("1.30", extended_support=True)) == ["error"]


def test_a_version_that_eks_does_not_have_is_found() -> None:
    assert severities("LINT-062", versions("1.9")) == ["error"]
    assert severities("LINT-062", versions("1.99")) == ["warning"], "it may be a new one"
    assert severities("LINT-062", versions("1.35")) == []


def test_after_the_last_known_version_ended_no_version_is_praised() -> None:
    (finding,) = found("LINT-060", versions("1.35", "2030-01-01"))
    assert finding.need.startswith("a version in standard support;")


@pytest.mark.parametrize(
    ("eks", "karpenter", "fires"), [("1.35", "1.8.2", True), ("1.35", "1.9.0", False), ("1.34", "1.5.9", True), ("1.34", "1.6.0", False)]
)
def test_a_karpenter_too_old_for_kubernetes_is_found(eks: str, karpenter: str, fires: bool) -> None:
    assert bool(found("LINT-063", versions(eks, karpenter=karpenter))) is fires


def test_without_a_cluster_versions_are_not_checked() -> None:
    assert [found(f"LINT-06{last}", subject()) for last in range(4)] == [[]] * 4


def test_every_version_has_a_year_of_extended_support() -> None:
    for version in eks_versions().values():
        assert day_number(version.extended_until) - day_number(version.standard_until) in (365, 366)


def test_days_are_counted_over_months_and_leap_years() -> None:
    assert day_number("2024-03-01") - day_number("2024-02-28") == 2
    assert day_number("2026-03-01") - day_number("2026-02-28") == 1
    assert day_number("2027-01-01") - day_number("2026-12-31") == 1
    assert day_number("2026-11-21") - day_number("1970-01-01") == 20_778
