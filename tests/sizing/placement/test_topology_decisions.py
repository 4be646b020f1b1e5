"""Decisions of the real Karpenter code on topology rules.

``topologies.json.gz``: recorded on 2026-11-25 with ``recorder/``: karpenter v1.14.1 with its AWS provider v1.14.1, run offline on the
shipped catalog, on seeds 0 to 299 of ``recorder/topology_scenarios.py``. Karpenter was built with ``recorder/sort-domains.sh``: of equal
domains it takes the first by name, not any.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from penstock.sizing.catalog.allocatable import NodeSettings
from penstock.sizing.catalog.catalog import shipped
from penstock.sizing.placement.place import place
from penstock.sizing.placement.scenario import read
from tests.sizing.placement.test_decisions import claims

RECORDED = Path(__file__).with_name("topologies.json.gz")
RULES = {
    "topologySpreadConstraints",
    "podAffinity",
    "podAntiAffinity",
    "ScheduleAnyway",
    "DoNotSchedule",
    "minDomains",
    "nodeTaintsPolicy",
    "nodeAffinityPolicy",
    "matchLabelKeys",
    "topology.kubernetes.io/zone",
    "kubernetes.io/hostname",
    "karpenter.sh/capacity-type",
    "existingNodes",
}


@cache
def recorded() -> list[dict[str, Any]]:
    document: list[dict[str, Any]] = json.loads(gzip.decompress(RECORDED.read_bytes()))
    return document


def names() -> Iterator[str]:
    yield from (case["scenario"]["name"] for case in recorded())


def test_the_recorded_scenarios_cover_each_rule_and_pods_that_it_leaves_unschedulable() -> None:
    assert len(set(names())) == len(recorded()) >= 200
    used = Counter(rule for case in recorded() for rule in RULES if f'"{rule}"' in json.dumps(case["scenario"]))
    assert {rule: times for rule in RULES if (times := used[rule]) < 10} == {}
    assert sum(bool(case["decision"]["unschedulable"]) for case in recorded()) > 50
    assert sum("existing_nodes" in case["decision"] for case in recorded()) > 20


@pytest.mark.parametrize("index", range(len(recorded())), ids=list(names()))
def test_the_decision_is_karpenters_node_by_node(index: int) -> None:
    case = recorded()[index]
    result = place(read(case), shipped(), NodeSettings()).as_json()
    assert claims(result) == claims(case["decision"])
    assert result["unschedulable"] == case["decision"]["unschedulable"]
    assert result.get("existing_nodes", {}) == case["decision"].get("existing_nodes", {})
