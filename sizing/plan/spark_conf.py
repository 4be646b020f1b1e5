"""The Spark settings of a plan: complete, so that every launcher creates the same pods."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.sizing.plan.agreement import AgreedPod, cpu_text
from penstock.sizing.planned import Pods
from penstock.sizing.spark_settings import SparkSettings
from penstock.sizing.targets import DecidedTargets


def planned_conf(
    targets: DecidedTargets, settings: SparkSettings, executor: AgreedPod, driver: AgreedPod, pods: Pods, chosen: Mapping[str, str]
) -> dict[str, str]:
    """Every setting of the plan, by name.

    Heap and overhead are absolute: the default of the factor depends on the mode. User settings that the plan does not determine are
    passed through unchanged.

    Args:
        targets: targets of the job.
        settings: settings of the job.
        executor: merged executor.
        driver: merged driver.
        pods: as planned.
        chosen: settings that the plan chose as defaults; the user's take precedence.

    Returns:
        Setting -> value as text, sorted by name.
    """
    shuffle = settings.shuffle_partitions or targets.parallelism.value
    planned = {
        "spark.submit.deployMode": settings.deploy_mode,
        "spark.dynamicAllocation.enabled": "false",
        "spark.executor.instances": str(pods.executor.count),
        "spark.sql.shuffle.partitions": str(shuffle),
    }
    for kind, agreed, pod in (("executor", executor, pods.executor), ("driver", driver, pods.driver)):
        planned |= {
            f"spark.{kind}.cores": str(agreed.cores),
            f"spark.{kind}.memory": f"{pod.heap_mib}m",
            f"spark.{kind}.memoryOverhead": f"{pod.overhead_mib}m",
            f"spark.kubernetes.{kind}.request.cores": cpu_text(agreed.request_cpu_millicores),
        }
    return dict(sorted({**chosen, **targets.spark_conf, **planned}.items()))
