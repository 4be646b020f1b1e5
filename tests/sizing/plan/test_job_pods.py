"""The pods of a job as Karpenter sees them."""

from __future__ import annotations

import pytest

from penstock.sizing.errors import BadSparkSetting, Faults, PenstockError
from penstock.sizing.plan import plan
from penstock.sizing.plan.job_pods import node_selector, pod_groups
from penstock.sizing.plan.nodes import requested
from tests.sizing.clusters import PRODUCTION, targets

OF_ALL = "spark.kubernetes.node.selector."
OF_EXECUTORS = "spark.kubernetes.executor.node.selector."
OF_DRIVERS = "spark.kubernetes.driver.node.selector."


def test_the_pods_ask_for_what_the_plan_says_and_go_where_the_environment_sends_them() -> None:
    made = plan(targets())
    driver, executor = pod_groups(made.pods, made.spark_conf, PRODUCTION)
    assert [(group.name, group.count, requested(group)) for group in (driver, executor)] == [
        ("driver", 1, (1000, 2048)),
        ("executor", 7, (1000, 2048)),
    ]
    assert driver.pod.spec.node_selector == {"penstock.dev/role": "driver"}
    assert [one.value for one in executor.pod.spec.tolerations] == ["executor"]


def test_several_jobs_name_their_pods_apart() -> None:
    made = plan(targets())
    assert [group.name for group in pod_groups(made.pods, {}, PRODUCTION, "clicks")] == ["clicks/driver", "clicks/executor"]


def test_the_selector_of_one_kind_wins_over_that_of_both_and_both_over_the_environments() -> None:
    conf = {f"{OF_ALL}disk": "hdd", f"{OF_EXECUTORS}disk": "ssd", f"{OF_ALL}penstock.dev/role": "any", f"{OF_DRIVERS}rack": "1"}
    assert node_selector("executor", conf, PRODUCTION.executor) == {"penstock.dev/role": "any", "disk": "ssd"}
    assert node_selector("driver", conf, PRODUCTION.driver) == {"penstock.dev/role": "any", "disk": "hdd", "rack": "1"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (f"{OF_ALL}disk", "a b"),
        (f"{OF_ALL}", "ssd"),
        (f"{OF_EXECUTORS}a/b/c", "ssd"),
        (f"{OF_DRIVERS}disk", "x" * 64),
        (f"{OF_DRIVERS}-disk", "ssd"),
        ("spark.kubernetes.allocation.batch.size", "many"),
        ("spark.kubernetes.allocation.batch.size", "0"),
        ("spark.kubernetes.allocation.batch.size", "-5"),
        ("spark.kubernetes.allocation.batch.delay", "0s"),
        ("spark.kubernetes.allocation.batch.delay", "1 parsec"),
        ("spark.decommission.enabled", "yes"),
        ("spark.kubernetes.executor.terminationGracePeriodSeconds", "\N{SUPERSCRIPT TWO}"),
        ("spark.kubernetes.executor.terminationGracePeriodSeconds", "9" * 500),
    ],
)
@pytest.mark.parametrize("in_cluster", [True, False])
def test_what_spark_or_kubernetes_would_refuse_is_a_coded_error(key: str, value: str, *, in_cluster: bool) -> None:
    with pytest.raises(BadSparkSetting) as raised:
        plan(targets(spark_conf={key: value}), PRODUCTION if in_cluster else None)
    assert (raised.value.path, raised.value.given) == (f"spark_conf.{key}", value)
    assert raised.value.need


def test_all_the_bad_settings_come_at_once() -> None:
    conf = {f"{OF_ALL}disk": "a b", "spark.kubernetes.allocation.batch.size": "x", f"{OF_DRIVERS}rack": "?"}
    with pytest.raises(PenstockError) as raised:
        plan(targets(spark_conf=conf), PRODUCTION)
    assert isinstance(raised.value, Faults)
    assert {fault.path for fault in raised.value.errors} == {f"spark_conf.{key}" for key in conf}
