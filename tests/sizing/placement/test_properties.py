"""Properties of any scenario."""

from __future__ import annotations

import contextlib
import copy
import json
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sizing.catalog.allocatable import NodeSettings, allocatable
from penstock.sizing.catalog.catalog import shipped
from penstock.sizing.errors import PenstockError
from penstock.sizing.placement.place import place
from penstock.sizing.placement.scenario import read
from penstock.sizing.placement.staged import place_staged
from tests.sizing.placement.test_decisions import recorded
from tests.sizing.placement.worlds import CAPACITY, CPU, FAMILY, daemon, needs, pods, pool, scenario

FAMILIES = ("m6i", "m7g", "c6a", "r7i", "t3", "g5")
MIB = 1024 * 1024


@st.composite
def pools(draw: st.DrawFn) -> list[dict[str, Any]]:
    result = []
    for index in range(draw(st.integers(1, 3))):
        families = draw(st.lists(st.sampled_from(FAMILIES), min_size=1, max_size=3, unique=True))
        requirements = [
            needs(FAMILY, "In", *families),
            needs(CAPACITY, "In", *draw(st.sampled_from([("spot",), ("on-demand",), ("spot", "on-demand")]))),
        ]
        if draw(st.booleans()):
            requirements.append(needs(CPU, draw(st.sampled_from(["Lt", "Gt"])), str(draw(st.integers(1, 64)))))
        limits = {"cpu": str(draw(st.integers(0, 64)))} if draw(st.booleans()) else {}
        result.append(pool(f"pool{index}", *requirements, limits=limits, weight=draw(st.none() | st.integers(1, 3))))
    return result


@st.composite
def groups(draw: st.DrawFn) -> list[dict[str, Any]]:
    result = []
    for index in range(draw(st.integers(1, 4))):
        cpu, memory = draw(st.integers(0, 9000)), draw(st.integers(0, 40_000))
        selector = draw(st.sampled_from([{}, {"kubernetes.io/arch": "arm64"}, {"kubernetes.io/arch": "amd64"}, {"team": "x"}]))
        result.append(pods(f"g{index}", draw(st.integers(0, 25)), cpu=f"{cpu}m", memory=f"{memory}Mi", nodeSelector=selector))
    return result


daemons = st.lists(st.builds(daemon, st.sampled_from(["a", "b"]), cpu=st.sampled_from(["50m", "1"])), max_size=2)
scenarios = st.builds(scenario, pools(), groups(), daemons)


def counts(document: dict[str, Any]) -> Counter[str]:
    return Counter({group["pod"]["metadata"]["name"]: group["count"] for group in document["pods"]})


@given(scenarios)
def test_every_pod_is_placed_or_unschedulable_and_none_is_both(document: dict[str, Any]) -> None:
    decision = place(read(document), shipped(), NodeSettings())
    total = Counter(decision.unschedulable)
    for claim in decision.node_claims:
        total.update(claim.pods)
    assert +total == +counts(document)
    assert {reason.group for reason in decision.reasons} == set(decision.unschedulable)


@given(scenarios)
def test_the_pods_of_a_claim_fit_each_of_its_types(document: dict[str, Any]) -> None:
    asked = {group["pod"]["metadata"]["name"]: group["pod"]["spec"]["containers"][0]["resources"]["requests"] for group in document["pods"]}
    for claim in place(read(document), shipped(), NodeSettings()).node_claims:
        cpu = sum(int(asked[name]["cpu"][:-1]) * count for name, count in claim.pods.items())
        memory = sum(int(asked[name]["memory"][:-2]) * count for name, count in claim.pods.items())
        for name in claim.instance_types:
            instance = shipped().get(name)
            assert instance is not None
            room = allocatable(instance, NodeSettings())
            assert (cpu <= room.cpu_millicores, memory <= room.memory_mib, sum(claim.pods.values()) <= room.pods) == (True,) * 3


@given(scenarios)
def test_what_is_launched_is_of_the_claims_own_types_and_at_most_60(document: dict[str, Any]) -> None:
    for claim in place(read(document), shipped(), NodeSettings()).node_claims:
        assert set(claim.launch.instance_types) <= set(claim.instance_types)
        assert 1 <= len(claim.launch.instance_types) <= 60
        assert claim.cheapest_type in claim.launch.instance_types
        assert list(claim.instance_types) == sorted(claim.instance_types)


@given(scenarios, st.randoms(use_true_random=False))
def test_the_order_of_pools_and_daemon_sets_does_not_matter_nor_that_of_groups_that_differ_in_size(
    document: dict[str, Any], random: Any
) -> None:
    sizes = [group["pod"]["spec"]["containers"][0]["resources"]["requests"] for group in document["pods"]]
    shuffled = copy.deepcopy(document)
    random.shuffle(shuffled["nodePools"])
    random.shuffle(shuffled["daemonSets"])
    if len({(size["cpu"], size["memory"]) for size in sizes}) == len(sizes):
        random.shuffle(shuffled["pods"])
    one, other = (place(read(each), shipped(), NodeSettings()).as_json() for each in (document, shuffled))
    assert one == other


@given(scenarios)
def test_more_room_in_the_limits_never_leaves_more_pods_in_one_pool(document: dict[str, Any]) -> None:
    document["nodePools"] = document["nodePools"][:1]
    open_ended = copy.deepcopy(document)
    open_ended["nodePools"][0]["spec"]["limits"] = {}
    bound, free = (sum(place(read(each), shipped(), NodeSettings()).unschedulable.values()) for each in (document, open_ended))
    assert free <= bound


@given(scenarios, st.lists(st.tuples(st.sampled_from([0.0, 0.7, 3.0, 20.0]), st.integers(1, 6)), max_size=4))
@settings(max_examples=50)
def test_staged_or_not_no_pod_is_lost(document: dict[str, Any], comings: list[tuple[float, int]]) -> None:
    first = document["pods"][0]
    if comings:
        first["count"] = sum(count for _, count in comings)
        document["arrivals"] = [{"at_s": at_s, "group": "g0", "count": count} for at_s, count in comings]
    decision = place_staged(read(document), shipped(), NodeSettings())
    total = Counter(decision.unschedulable)
    for claim in decision.node_claims:
        total.update(claim.pods)
    assert +total == +counts(document)


def paths(document: Any, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    items = document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    return [at] * bool(at) + [path for key, value in items for path in paths(value, (*at, key))]


JUNK = st.sampled_from([None, [], {}, "", "x", -1, 0, 10**30, 1.5, float("nan"), True, "1e9", [None], {"a": 1}, "\ud800"])


@given(st.integers(0, 39), st.randoms(use_true_random=False), JUNK, st.booleans())
@settings(max_examples=300)
def test_a_scenario_with_anything_anywhere_is_placed_or_refused_with_a_code(index: int, random: Any, junk: Any, drop: bool) -> None:
    document = copy.deepcopy(recorded()[index]["scenario"])
    path = random.choice(paths(document))
    at: Any = document
    for key in path[:-1]:
        at = at[key]
    if drop:
        del at[path[-1]]
    else:
        at[path[-1]] = junk
    with contextlib.suppress(PenstockError):
        json.dumps(place(read(document), shipped(), NodeSettings()).as_json(explain=True))
