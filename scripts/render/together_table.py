"""What jobs take together, as people read it."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.scripts.render.plan_table import cost_lines, labelled, node_lines
from penstock.sizing.together import Together


def render(shared: Together, names: Sequence[str]) -> str:
    """The jobs together as text.

    Args:
        shared: what they take.
        names: of the jobs.
    """
    verdict = "" if shared.feasible else "NOT FEASIBLE: "
    found = f"{len(names)} jobs, {shared.pods} pods on {shared.nodes.staged.nodes} nodes"
    rows = [f"together in {shared.nodes.environment}: {verdict}{found}", ""]
    rows += labelled("jobs", [", ".join(names)])
    rows += labelled("nodes", node_lines(shared.nodes))
    if shared.cost is not None:
        rows += labelled("cost", cost_lines(shared.cost))
    rows += labelled("topics", [f"{shared.partitions} partitions"])
    if shared.kafka is not None and shared.kafka.cluster is not None:
        cluster = shared.kafka.cluster
        rows += labelled("brokers", [f"{cluster.brokers} x {cluster.broker_type}, bound by {cluster.binding}"])
    return "\n".join(rows) + "\n"
