"""The pods of a job as Karpenter sees them: requests, and node constraints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from penstock.sizing.cluster import Cluster, PodPlace
from penstock.sizing.errors import BadSparkSetting
from penstock.sizing.executor_spread import ExecutorSpread, spread_constraints
from penstock.sizing.placement.pod_manifests import PodSpec
from penstock.sizing.placement.resources import EPHEMERAL_STORAGE
from penstock.sizing.placement.scenario import PodGroup
from penstock.sizing.planned import PlannedPod, Pods
from penstock.sizing.targets import Targets

DRIVER = "driver"
EXECUTOR = "executor"
# Source: Spark 4.1.1, deploy/k8s/Config.scala: selectors of both kinds of pods, and of one kind, which takes precedence.
_SELECTORS = "spark.kubernetes.node.selector."
_SPREAD_LABELS = {"role": EXECUTOR}
_SELECTORS_OF = {kind: f"spark.kubernetes.{kind}.node.selector." for kind in (DRIVER, EXECUTOR)}


def pod_groups(pods: Pods, conf: Mapping[str, str], cluster: Cluster, job: str = "") -> tuple[PodGroup, PodGroup]:
    """The groups of the driver and the executors.

    Args:
        pods: pods of the plan.
        conf: Spark settings, for their node selectors.
        cluster: the environment, which defines node selectors and tolerations of drivers and executors.
        job: name of the job, which prefixes the group's name when pods of several jobs are placed together.
    """
    return (
        _group(_named(job, DRIVER), pods.driver, cluster.driver, node_selector(DRIVER, conf, cluster.driver)),
        spread_out(
            _group(_named(job, EXECUTOR), pods.executor, cluster.executor, node_selector(EXECUTOR, conf, cluster.executor)),
            pods.executor_spread,
            cluster,
        ),
    )


def spread_out(group: PodGroup, spread: ExecutorSpread | None, cluster: Cluster) -> PodGroup:
    """A group of executors whose pods are spread over nodes and zones.

    Args:
        group: the executors of one job, in a namespace of their own.
        spread: None: the group unchanged.
        cluster: the environment, with the zones to spread over.
    """
    if spread is None:
        return group
    data = group.model_dump(by_alias=True, exclude_unset=True)
    # A job's own namespace, where no other job's executors are counted.
    data["pod"]["metadata"] |= {"namespace": group.name, "labels": _SPREAD_LABELS}
    data["pod"]["spec"]["topologySpreadConstraints"] = spread_constraints(spread, _SPREAD_LABELS, group.count, len(cluster.zones))
    return PodGroup.model_validate(data)


def node_selector(kind: str, conf: Mapping[str, str], place: PodPlace) -> dict[str, str]:
    """The node selector: the environment's, then Spark settings for all pods, then those for this kind.

    Args:
        kind: ``driver`` or ``executor``.
        conf: Spark settings.
        place: the environment's constraints for this kind.
    """
    return {**place.node_selector, **_after(_SELECTORS, conf), **_after(_SELECTORS_OF[kind], conf)}


def selector_faults(targets: Targets) -> list[BadSparkSetting]:
    """SIZ-002 for each node selector of sparkConf that Kubernetes would reject."""
    faults: list[BadSparkSetting] = []
    for key, value in targets.spark_conf.items():
        prefix = next((prefix for prefix in (_SELECTORS, *_SELECTORS_OF.values()) if key.startswith(prefix)), None)
        need = None if prefix is None else _refused(key.removeprefix(prefix), value)
        if need is not None:
            fault = BadSparkSetting(given=value, need=need, fix="for example spark.kubernetes.node.selector.disk: ssd")
            faults.append(targets.locate(fault, f"spark_conf.{key}"))
    return faults


def _refused(label: str, value: str) -> str | None:
    """The requirement that a label of a node selector violates, or None."""
    try:
        PodSpec.model_validate({"containers": [{"name": "spark"}], "nodeSelector": {label: value}})
    except ValidationError as invalid:
        first = invalid.errors(include_url=False)[0]
        return str((first.get("ctx") or {}).get("need") or first["msg"])
    return None


def _after(prefix: str, conf: Mapping[str, str]) -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in conf.items() if key.startswith(prefix)}


def _named(job: str, kind: str) -> str:
    return f"{job}/{kind}" if job else kind


def _group(name: str, pod: PlannedPod, place: PodPlace, selector: dict[str, str]) -> PodGroup:
    resources: dict[str, dict[str, str]] = {
        "requests": {"cpu": f"{pod.request_cpu_millicores}m", "memory": f"{pod.memory_mib}Mi"},
        "limits": {"memory": f"{pod.memory_mib}Mi"},
    }
    if pod.request_ephemeral_storage_mib:
        resources["requests"][EPHEMERAL_STORAGE] = f"{pod.request_ephemeral_storage_mib}Mi"
    spec: dict[str, Any] = {"containers": [{"name": "spark", "resources": resources}]}
    if selector:
        spec["nodeSelector"] = selector
    if place.tolerations:
        spec["tolerations"] = list(place.tolerations)
    return PodGroup.model_validate({"count": pod.count, "pod": {"metadata": {"name": name}, "spec": spec}})
