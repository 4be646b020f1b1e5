"""The plan of a session as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.scripts.render.plan_table import cost_lines, labelled, node_lines
from penstock.scripts.render.screen import Screen
from penstock.scripts.render.table import facts
from penstock.sizing.plan.session import SessionPlan
from penstock.sizing.planned import PlannedPod
from penstock.sizing.units import cpu_text, memory_text


def render(name: str, session: SessionPlan, screen: Screen) -> str:
    """The session as text.

    Args:
        name: of the session.
        session: its plan.
        screen: where it goes.
    """
    verdict = "" if session.feasible else "NOT FEASIBLE: "
    executors = "1 executor" if session.totals.executors == 1 else f"{session.totals.executors} executors"
    head = f"session {name}: {verdict}{len(session.jobs)} jobs in 1 driver, {executors}, {session.tasks_at_a_time} tasks at a time"
    return "\n".join([head, "", *facts(labelled(_facts(session)), screen)]) + "\n"


def _facts(session: SessionPlan) -> Iterator[tuple[str, Sequence[str]]]:
    yield "jobs", [", ".join(session.jobs)]
    yield "driver", [_pod(session.pods.driver)]
    yield "executor", [_pod(session.pods.executor)]
    if session.nodes is not None:
        yield "nodes", node_lines(session.nodes)
    if session.cost is not None:
        yield "cost", cost_lines(session.cost)


def _pod(pod: PlannedPod) -> str:
    parts = f"heap {memory_text(pod.heap_mib)}, overhead {memory_text(pod.overhead_mib)}"
    return f"{memory_text(pod.memory_mib)} ({parts}), {cpu_text(pod.request_cpu_millicores)}"
