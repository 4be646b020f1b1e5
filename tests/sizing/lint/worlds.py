"""Small subjects to lint: a pool, some pods, a job."""

from __future__ import annotations

from typing import Any

from penstock.sizing.catalog.catalog import shipped
from penstock.sizing.lint.finding import Finding
from penstock.sizing.lint.lint import RULES
from penstock.sizing.lint.subject import LintedConf, LintedJob, LintedPods, LintedPool, LintedSource, LintedVersions, Role, Subject
from penstock.sizing.placement.node_pool_manifests import NodePool
from penstock.sizing.placement.selection import ManifestToleration
from penstock.sizing.plan import plan
from penstock.sizing.targets import DriverTarget, ExecutorTarget, Parallelism, Targets

CATEGORY = "karpenter.k8s.aws/instance-category"
CAPACITY = "karpenter.sh/capacity-type"
CPU = "karpenter.k8s.aws/instance-cpu"
FAMILY = "karpenter.k8s.aws/instance-family"
ARCH = "kubernetes.io/arch"
TYPE = "node.kubernetes.io/instance-type"
TAINT = {"key": "role", "value": "spark", "effect": "NoSchedule"}
TOLERATION = {"key": "role", "operator": "Equal", "value": "spark", "effect": "NoSchedule"}
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")


def needs(key: str, operator: str, *values: str, **more: Any) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {}), **more}


ON_DEMAND, SPOT, BOTH = needs(CAPACITY, "In", "on-demand"), needs(CAPACITY, "In", "spot"), needs(CAPACITY, "In", "spot", "on-demand")


def pool(name: str, *requirements: dict[str, Any], **spec: Any) -> LintedPool:
    """A pool; `labels`, `taints` and `expireAfter` are set on its template, other fields on its spec."""
    node: dict[str, Any] = {"requirements": list(requirements), "taints": list(spec.pop("taints", ()))}
    if "expireAfter" in spec:
        node["expireAfter"] = spec.pop("expireAfter")
    template = {"metadata": {"labels": spec.pop("labels", {})}, "spec": node}
    return LintedPool(pool=NodePool.model_validate({"metadata": {"name": name}, "spec": {"template": template, **spec}}))


def pods(role: Role = "executor", selector: dict[str, str] | None = None, *tolerations: dict[str, str], **more: Any) -> LintedPods:
    tolerated = tuple(ManifestToleration.model_validate(one) for one in tolerations)
    return LintedPods(name=f"the {role}", role=role, node_selector=selector or {}, tolerations=tolerated, **more)


def setting(key: str, value: str) -> Subject:
    return subject(confs=(LintedConf(name="job", conf={key: value}),))


def job(
    *sources: LintedSource,
    parallelism: int = 10,
    slots: int = 5,
    memory_mib: int = 16_384,
    cpu_millicores: int | None = None,
    driver_mib: int | None = None,
    spark_conf: dict[str, str] | None = None,
    **more: Any,
) -> LintedJob:
    targets = Targets(
        parallelism=Parallelism(value=parallelism),
        executor=ExecutorTarget(slots=slots, memory_mib=memory_mib, cpu_millicores=cpu_millicores),
        driver=DriverTarget(memory_mib=driver_mib),
        spark_conf=spark_conf or {},
        source_topics={source.topic: source.partitions for source in sources},
    )
    return LintedJob(name="job", plan=plan(targets), sources=sources, **more)


def source(partitions: int = 10, **more: Any) -> LintedSource:
    return LintedSource(name="a", topic="events", partitions=partitions, **more)


def versions(eks: str, today: str = "2026-11-21", karpenter: str = "1.14.1", **more: Any) -> Subject:
    return subject(versions=LintedVersions(eks=eks, karpenter=karpenter, **more), today=today)


def subject(**parts: Any) -> Subject:
    return Subject(**{"today": "2026-11-21", "catalog": shipped(), "zones": ZONES, **parts})


def found(rule: str, linted: Subject) -> list[Finding]:
    return RULES[rule].findings(linted)


def severities(rule: str, linted: Subject) -> list[str]:
    return [finding.severity for finding in found(rule, linted)]
