"""Writes random scenarios with topology rules for the recorder: ``python topology_scenarios.py FOLDER NUMBER [SEED]``."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

ZONE, HOST, CAPACITY = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "karpenter.sh/capacity-type"
SLOT = "example.com/slot"
REQUIRED, PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
ZONES = ["us-east-1a", "us-east-1b", "us-east-1c"]
APPS = ["web", "api", "etl"]
Json = dict[str, Any]


def _in(key: str, *values: str) -> Json:
    return {"key": key, "operator": "In", "values": list(values)}


def _some(rng: random.Random, values: list[str]) -> list[str]:
    return sorted(rng.sample(values, rng.randint(1, len(values))))


def _pool(rng: random.Random, name: str) -> Json:
    requirements = [
        _in("karpenter.k8s.aws/instance-family", *rng.choice([["m6i"], ["m6i", "r6i"], ["c7g", "m7g"], ["m5", "m6i", "m7i"]])),
        _in("karpenter.k8s.aws/instance-cpu", *rng.choice([["4"], ["4", "8"], ["2", "4", "8", "16"]])),
        _in(CAPACITY, *rng.choice([["on-demand"], ["on-demand"], ["spot", "on-demand"], ["spot"]])),
    ]
    if rng.random() < 0.4:
        operator = rng.choice(["In", "NotIn"])
        zones = _some(rng, ZONES) if operator == "In" else [rng.choice(ZONES)]
        requirements.append({"key": ZONE, "operator": operator, "values": zones})
    template: Json = {"metadata": {"labels": {}}, "spec": {"requirements": requirements, "taints": []}}
    if rng.random() < 0.35:
        requirements.append(_in(SLOT, *[str(slot) for slot in range(1, rng.randint(2, 4))]))
    elif rng.random() < 0.2:
        template["metadata"]["labels"][SLOT] = "9"
    if rng.random() < 0.25:
        template["spec"]["taints"].append({"key": "dedicated", "value": "x", "effect": rng.choice(["NoSchedule", "PreferNoSchedule"])})
    spec: Json = {"template": template}
    if rng.random() < 0.2:
        spec["limits"] = {"cpu": str(rng.choice([8, 16, 40]))}
    if rng.random() < 0.3:
        spec["weight"] = rng.randint(1, 100)
    return {"metadata": {"name": name}, "spec": spec}


def _selector(rng: random.Random, app: str) -> Json:
    chosen = app if rng.random() < 0.75 else rng.choice(APPS)
    kind = rng.random()
    if kind < 0.7:
        return {"matchLabels": {"app": chosen}}
    if kind < 0.85:
        return {"matchExpressions": [_in("app", *sorted({app, chosen, rng.choice(APPS)}))]}
    return {"matchExpressions": [{"key": "app", "operator": rng.choice(["Exists", "DoesNotExist"])}]} if kind < 0.95 else {}


def _key(rng: random.Random) -> str:
    return rng.choice([ZONE, ZONE, ZONE, HOST, HOST, CAPACITY, SLOT])


def _spread(rng: random.Random, app: str) -> Json:
    when = rng.choice(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"])
    constraint: Json = {"maxSkew": rng.choice([1, 1, 2, 3]), "topologyKey": _key(rng), "whenUnsatisfiable": when}
    if rng.random() < 0.95:
        constraint["labelSelector"] = _selector(rng, app)
        if rng.random() < 0.1:
            constraint["matchLabelKeys"] = ["version"]
    if when == "DoNotSchedule" and rng.random() < 0.25:
        constraint["minDomains"] = rng.randint(1, 5)
    if rng.random() < 0.15:
        constraint["nodeAffinityPolicy"] = rng.choice(["Honor", "Ignore"])
    if rng.random() < 0.15:
        constraint["nodeTaintsPolicy"] = rng.choice(["Honor", "Ignore"])
    return constraint


def _term(rng: random.Random, app: str) -> Json:
    return {"topologyKey": _key(rng), "labelSelector": _selector(rng, app)}


def _between_pods(rng: random.Random, app: str) -> Json:
    both: Json = {}
    if rng.random() < 0.7:
        both[REQUIRED] = [_term(rng, app)]
    if rng.random() < 0.4 or not both:
        both[PREFERRED] = [{"weight": rng.randint(1, 100), "podAffinityTerm": _term(rng, app)} for _ in range(rng.randint(1, 2))]
    return both


def _node_affinity(rng: random.Random) -> Json:
    node: Json = {}
    if rng.random() < 0.6:
        terms = [{"matchExpressions": [_in(ZONE, *_some(rng, ZONES))]} for _ in range(rng.randint(1, 2))]
        node[REQUIRED] = {"nodeSelectorTerms": terms}
    if rng.random() < 0.5 or not node:
        node[PREFERRED] = [{"weight": rng.randint(1, 100), "preference": {"matchExpressions": [_in(ZONE, rng.choice(ZONES))]}}]
    return node


def _affinity(rng: random.Random, app: str) -> Json:
    affinity: Json = {}
    if rng.random() < 0.2:
        affinity["podAffinity"] = _between_pods(rng, app)
    if rng.random() < 0.25:
        affinity["podAntiAffinity"] = _between_pods(rng, app)
    if rng.random() < 0.25:
        affinity["nodeAffinity"] = _node_affinity(rng)
    return affinity


def _group(rng: random.Random, name: str) -> Json:
    app = rng.choice(APPS)
    requests = {"cpu": rng.choice(["500m", "1", "1500m", "3"]), "memory": rng.choice(["512Mi", "2Gi", "6Gi"])}
    spec: Json = {"containers": [{"name": "c", "image": "x", "resources": {"requests": requests}}]}
    if rng.random() < 0.75:
        spec["topologySpreadConstraints"] = [_spread(rng, app) for _ in range(rng.choice([1, 1, 2, 3]))]
    if affinity := _affinity(rng, app):
        spec["affinity"] = affinity
    if rng.random() < 0.15:
        spec["nodeSelector"] = {ZONE: rng.choice(ZONES)}
    if rng.random() < 0.3:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    metadata: Json = {"name": name}
    if rng.random() < 0.95:
        metadata["labels"] = {"app": app, "version": rng.choice(["1", "2"])}
    if rng.random() < 0.05:
        metadata["namespace"] = "other"
    return {"count": rng.choice([0, 1, 2, 3, 5, 8, 13]), "pod": {"metadata": metadata, "spec": spec}}


def scenario(seed: int) -> Json:
    """The scenario of a seed."""
    rng = random.Random(seed)
    pools = [_pool(rng, f"p{index}") for index in range(rng.choice([1, 1, 2, 3]))]
    groups = [_group(rng, f"g{index}") for index in range(rng.choice([1, 2, 2, 3, 4]))]
    made: Json = {"name": f"topology{seed:04d}", "nodePools": pools, "daemonSets": [], "pods": groups, "spotRatio": 0.4}
    if rng.random() < 0.4:
        made["existingNodes"] = [_node(rng, index, pools, groups) for index in range(rng.randint(1, 4))]
    return made


def _node(rng: random.Random, index: int, pools: list[Json], groups: list[Json]) -> Json:
    pool = rng.choice(pools)
    zone = next(
        (each["values"] for each in pool["spec"]["template"]["spec"]["requirements"] if each["key"] == ZONE and each["operator"] == "In"),
        ZONES,
    )
    return {
        "name": f"node-{index}",
        "nodePool": pool["metadata"]["name"],
        "instanceType": rng.choice(["m6i.xlarge", "m6i.2xlarge", "m6i.large"]),
        "zone": rng.choice(zone),
        "capacityType": rng.choice(["on-demand", "spot"]),
        "pods": {group["pod"]["metadata"]["name"]: rng.randint(1, 2) for group in groups if rng.random() < 0.4},
    }


def main(folder: str, number: str, seed: str = "0") -> None:
    """Writes scenarios.

    Args:
        folder: where to.
        number: how many.
        seed: seed of the first.
    """
    for each in range(int(seed), int(seed) + int(number)):
        Path(folder, f"topology{each:04d}.json").write_text(json.dumps(scenario(each)), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
