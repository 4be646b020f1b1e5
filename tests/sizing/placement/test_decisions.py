"""Decisions of the real Karpenter code.

``decisions.json.gz``: 40 given decisions and 176 recorded for this project on 2026-11-21, all of karpenter v1.14.1 with its AWS provider
v1.14.1, run offline on the shipped catalog: us-east-1a, b and c, AL2023, all pods in one batch.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from penstock.sizing.catalog.allocatable import NodeSettings
from penstock.sizing.catalog.catalog import shipped
from penstock.sizing.placement.place import place
from penstock.sizing.placement.scenario import read

RECORDED = Path(__file__).with_name("decisions.json.gz")


@cache
def recorded() -> list[dict[str, Any]]:
    document: list[dict[str, Any]] = json.loads(gzip.decompress(RECORDED.read_bytes()))
    return document


def claims(decision: dict[str, Any]) -> list[str]:
    """The claims as a readable, comparable multiset."""
    return sorted(json.dumps(claim, sort_keys=True) for claim in decision["node_claims"])


def names() -> Iterator[str]:
    yield from (case["scenario"]["name"] for case in recorded())


def test_there_are_40_given_decisions_and_many_more() -> None:
    assert sum(name.startswith("open") for name in names()) == 40
    assert len(set(names())) == len(recorded()) > 200


@pytest.mark.parametrize("index", range(len(recorded())), ids=list(names()))
def test_the_decision_is_karpenters_to_the_letter(index: int) -> None:
    case = recorded()[index]
    result = place(read(case), shipped(), NodeSettings()).as_json()
    assert claims(result) == claims(case["decision"])
    assert result["unschedulable"] == case["decision"]["unschedulable"]
    assert result.get("existing_nodes", {}) == case["decision"].get("existing_nodes", {})
