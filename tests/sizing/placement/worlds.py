"""Small scenarios for the tests: pools, pods and DaemonSets in one line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.sizing.catalog.allocatable import NodeSettings
from penstock.sizing.catalog.catalog import Catalog, shipped
from penstock.sizing.placement.decision import Decision
from penstock.sizing.placement.place import place
from penstock.sizing.placement.scenario import read
from penstock.sizing.placement.staged import place_staged

CPU = "karpenter.k8s.aws/instance-cpu"
FAMILY = "karpenter.k8s.aws/instance-family"
TYPE = "node.kubernetes.io/instance-type"
CAPACITY = "karpenter.sh/capacity-type"
ZONE = "topology.kubernetes.io/zone"

Json = dict[str, Any]


def needs(key: str, operator: str, *values: str, min_values: int | None = None) -> Json:
    text: Json = {"key": key, "operator": operator}
    if values:
        text["values"] = list(values)
    return text if min_values is None else {**text, "minValues": min_values}


def pool(
    name: str,
    *requirements: Json,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Json] = (),
    limits: Mapping[str, Any] | None = None,
    weight: int | None = None,
    capacity: str = "on-demand",
) -> Json:
    own = [] if any(requirement["key"] == CAPACITY for requirement in requirements) else [needs(CAPACITY, "In", capacity)]
    spec: Json = {
        "template": {
            "metadata": {"labels": dict(labels or {})},
            "spec": {"requirements": [*own, *requirements], "taints": list(taints)},
        },
        "limits": dict(limits or {}),
    }
    if weight is not None:
        spec["weight"] = weight
    return {"metadata": {"name": name}, "spec": spec}


def pods(
    name: str, count: int, cpu: str | None = "1", memory: str | None = "1Gi", requests: Mapping[str, str] | None = None, **spec: Any
) -> Json:
    asked = {**({"cpu": cpu} if cpu else {}), **({"memory": memory} if memory else {}), **(requests or {})}
    container = {"name": "c", "image": "x", "resources": {"requests": asked}}
    return {"count": count, "pod": {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}}


def daemon(name: str, cpu: str = "100m", memory: str = "128Mi", **spec: Any) -> Json:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    return {"metadata": {"name": name}, "spec": {"template": {"spec": {"containers": [container], **spec}}}}


def affinity(*terms: Sequence[Json], preferred: Sequence[tuple[int, Sequence[Json]]] = ()) -> Json:
    node: Json = {}
    if terms:
        node["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [{"matchExpressions": list(term)} for term in terms]}
    if preferred:
        node["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": weight, "preference": {"matchExpressions": list(term)}} for weight, term in preferred
        ]
    return {"nodeAffinity": node}


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> Json:
    return {"key": key, "value": value, "effect": effect}


def scenario(pools: Sequence[Json], groups: Sequence[Json], daemons: Sequence[Json] = (), **more: Any) -> Json:
    return {"nodePools": list(pools), "daemonSets": list(daemons), "pods": list(groups), "spotModel": "ratio", "spotRatio": 0.4, **more}


def decide(
    pools: Sequence[Json],
    groups: Sequence[Json],
    daemons: Sequence[Json] = (),
    settings: NodeSettings | None = None,
    catalog: Catalog | None = None,
    **more: Any,
) -> Decision:
    return place(read(scenario(pools, groups, daemons, **more)), catalog or shipped(), settings or NodeSettings())


def decide_staged(pools: Sequence[Json], groups: Sequence[Json], daemons: Sequence[Json] = (), **more: Any) -> Decision:
    return place_staged(read(scenario(pools, groups, daemons, **more)), shipped(), NodeSettings())


def claims(decision: Decision) -> list[tuple[str, dict[str, int]]]:
    return [(claim.node_pool, claim.pods) for claim in decision.node_claims]
