"""Placement of many pods on the full catalog: ``python -m benchmarks.placement [--pods N ...]``.

Three fleets, from the one that needs the fewest nodes to the one that needs the most: machines of any size; machines of 8 cores; and 8
cores with 20 groups of pods of different sizes. Each is placed three times after a warm-up round, with the same decision each time.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

from penstock.sizing.catalog.allocatable import NodeSettings
from penstock.sizing.catalog.catalog import shipped
from penstock.sizing.placement.place import place
from penstock.sizing.placement.scenario import Scenario, read

ROUNDS = 3
_CPUS = "karpenter.k8s.aws/instance-cpu"


def main() -> None:
    """Prints a table: pods, nodes and seconds, with the minimum, the median and the maximum of the rounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--pods", type=int, nargs="+", default=[1_000, 2_000, 5_000, 10_000], help="how many (default: 1000 2000 5000 10000)"
    )
    arguments = parser.parse_args()
    fleets = {"any size, 1 group": ([], 1), "8 cores, 1 group": (["8"], 1), "8 cores, 20 groups": (["8"], 20)}
    for name, (cpus, groups) in fleets.items():
        for pods in arguments.pods:
            scenario = _scenario(pods, cpus, groups)
            nodes, seconds = _measure(scenario)
            times = f"{min(seconds):6.2f} {statistics.median(seconds):6.2f} {max(seconds):6.2f} s"
            print(f"{name:<20} {pods:>7,} pods {nodes:>6,} nodes {times}", flush=True)


def _measure(scenario: Scenario) -> tuple[int, list[float]]:
    seconds = []
    decisions = []
    for _ in range(ROUNDS + 1):
        begin = time.perf_counter()
        decisions.append(place(scenario, shipped(), NodeSettings()))
        seconds.append(time.perf_counter() - begin)
    assert all(decision == decisions[0] for decision in decisions), "the decisions differ"
    assert not decisions[0].unschedulable
    # The first round loads the catalog.
    return len(decisions[0].node_claims), seconds[1:]


def _scenario(pods: int, cpus: list[str], groups: int) -> Scenario:
    requirements = [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]}]
    if cpus:
        requirements.append({"key": _CPUS, "operator": "In", "values": cpus})
    document = {
        "nodePools": [{"metadata": {"name": "executors"}, "spec": {"template": {"spec": {"requirements": requirements}}}}],
        "daemonSets": [{"metadata": {"name": "aws-node"}, "spec": {"template": {"spec": _pod_spec("150m", "128Mi")}}}],
        "pods": [
            {
                "count": pods // groups,
                "pod": {"metadata": {"name": f"group{index}"}, "spec": _pod_spec(f"{1000 + 250 * index}m", f"{4096 + 512 * index}Mi")},
            }
            for index in range(groups)
        ],
        "spotModel": "ratio",
        "spotRatio": 0.4,
    }
    return read(document)


def _pod_spec(cpu: str, memory: str) -> dict[str, Any]:
    return {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]}


if __name__ == "__main__":
    main()
