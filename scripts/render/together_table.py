"""The combined requirements of several jobs as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.scripts.render.plan_table import cost_lines, labelled, node_lines
from penstock.scripts.render.screen import Screen
from penstock.scripts.render.table import facts
from penstock.sizing.plan.together import Together


def render(shared: Together, names: Sequence[str], screen: Screen) -> str:
    """The jobs together as text.

    Args:
        shared: what they take.
        names: of the jobs.
        screen: where it goes.
    """
    verdict = "" if shared.feasible else "NOT FEASIBLE: "
    totals = f"{len(names)} jobs, {shared.pods} pods on {shared.nodes.staged.nodes} nodes"
    head = f"together in {shared.nodes.environment}: {verdict}{totals}"
    return "\n".join([head, "", *facts(labelled(_facts(shared, names)), screen)]) + "\n"


def _facts(shared: Together, names: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    yield "jobs", [", ".join(names)]
    yield "nodes", node_lines(shared.nodes)
    if shared.cost is not None:
        yield "cost", cost_lines(shared.cost)
    yield "topics", [f"{shared.partitions} partitions"]
    if shared.kafka is not None and shared.kafka.cluster is not None:
        cluster = shared.kafka.cluster
        yield "brokers", [f"{cluster.brokers} x {cluster.broker_type}, bound by {cluster.binding}"]
