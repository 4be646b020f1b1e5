"""The node that drivers leave, for people, before they do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from penstock.scripts.operations.moving import NodeInUse, NodePod
from penstock.scripts.operations.status_table import duration
from penstock.scripts.render.screen import Screen
from penstock.scripts.render.table import Column, facts, table

_PODS = (Column("pod"), Column("then", wraps=True))


def node_lines(node: NodeInUse, jobs: Sequence[str], now: datetime, screen: Screen) -> Iterator[str]:
    """The lines of it.

    Args:
        node: that drivers leave.
        jobs: whose drivers.
        now: the time.
        screen: where they go.
    """
    yield from facts(_facts(node, now), screen)
    yield ""
    yield from table(_PODS, [(pod.name, _then(pod, jobs)) for pod in node.pods], screen)


def _facts(node: NodeInUse, now: datetime) -> Iterator[tuple[str, str]]:
    yield "node", " ".join(part for part in (node.name, node.instance_type) if part)
    yield "age", duration(now - node.began)
    yield "pool", node.pool or "none: Karpenter does not remove the node"
    if node.leaving:
        yield "goes on", f"a move that was interrupted, of {', '.join(sorted(node.leaving))}"


def _then(pod: NodePod, jobs: Sequence[str]) -> str:
    if pod.job in jobs and not pod.bounded:
        return "is stopped at the end of its micro-batch, and runs on another node"
    return "stays until it ends, as a bounded run" if pod.bounded else "stays"
