from __future__ import annotations

import re

import pytest

from penstock.infra.environment_file import load
from penstock.infra.node_alarms import BEYOND_LIMITS, limits_alarm, pending_alarm, pending_minutes
from penstock.infra.parts.observability import Alarms

NODES = load("production").spec.nodes
# Errors of Karpenter 1.14.1's scheduler, for one pool and for several, which are joined.
REFUSED = (
    "all available instance types exceed limits for nodepool (NodePool=executors)",
    'all available instance types exceed limits for nodepool: "executors"',
    "node limits have been exhausted for nodepool (NodePool=executors)",
    'incompatible with nodepool "drivers", did not tolerate taint; all available instance types exceed limits for nodepool "executors"',
)
OTHERS = (
    'incompatible with nodepool "drivers", did not tolerate taint (taint=penstock.dev/role=driver:NoSchedule)',
    "no instance type has enough resources, requirements=node.kubernetes.io/instance-type In [c6a.large]",
)


def _regex() -> str:
    """CloudWatch looks for it anywhere in the field."""
    (between_percent_signs,) = re.findall(r"\$\.error = %(.+)%", BEYOND_LIMITS.pattern)
    return str(between_percent_signs)


@pytest.mark.parametrize("error", REFUSED)
def test_an_error_about_a_pools_limits_is_counted(error: str) -> None:
    assert re.search(_regex(), error)


@pytest.mark.parametrize("error", OTHERS)
def test_another_reason_is_not(error: str) -> None:
    assert not re.search(_regex(), error)


def test_the_regex_has_only_what_cloudwatch_takes() -> None:
    """Source: CloudWatch Logs User Guide, "Supported regular expressions syntax": no parentheses, no spaces beside \\s."""
    assert re.fullmatch(r"[A-Za-z0-9:_#=@/;,\-^$?\[\]{}|\\*+.]+", _regex())


@pytest.mark.parametrize(("boot_ms", "minutes"), [(60_000, 4), (10_000, 1), (10_001, 2), (170_000, 9)])
def test_a_pod_may_wait_for_three_starts_of_a_node(boot_ms: int, minutes: int) -> None:
    assert NODES is not None
    assert pending_minutes(Alarms(), NODES.model_copy(update={"boot": boot_ms})) == minutes


def test_an_environment_may_say_how_long() -> None:
    assert NODES is not None
    assert pending_minutes(Alarms.model_validate({"pending": "15m"}), NODES) == 15


def test_periods_are_such_as_cloudwatch_takes() -> None:
    for alarm in (pending_alarm("dev", 1440), limits_alarm("dev")):
        assert alarm.period_s % 60 == 0
        assert alarm.period_s * alarm.periods <= 86_400
        assert alarm.missing == "notBreaching"
