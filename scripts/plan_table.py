"""A plan as people read it: a headline, the pods, the totals, and what they should know."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from sizing.planned import Explanation, Plan, PlannedPod

WIDTH = 100
_LABEL = 12


def render(plan: Plan, name: str) -> str:
    """The plan as text, at most `WIDTH` wide but for names that are longer.

    Args:
        plan: the plan.
        name: of the job.
    """
    rows = [f"{name}: {headline(plan)}", "", *_table(_pod_rows(plan)), ""]
    for label, lines in _facts(plan):
        rows += _labelled(label, lines)
    return "\n".join(rows) + "\n"


def render_explanations(plan: Plan) -> str:
    """Each number of the plan with its rule and inputs, as text."""
    return "\n" + "\n".join(line for explanation in plan.explain for line in _explained(explanation)) + "\n"


def headline(plan: Plan) -> str:
    """The plan in one line: ``2 executors x 5 slots run 10 tasks at a time``."""
    executors, slots, tasks = plan.totals.executors, plan.pods.executor.slots or 1, plan.tasks_at_a_time
    runs = "runs" if executors == 1 else "run"
    line = f"{_count(executors, 'executor')} x {_count(slots, 'slot')} {runs} {_count(tasks, 'task')} at a time"
    return line if plan.feasible else f"NOT FEASIBLE; the nearest: {line}"


def memory_text(memory_mib: int) -> str:
    """Memory in words: ``16 GiB``, ``11,703 MiB``."""
    return f"{memory_mib // 1024:,} GiB" if memory_mib % 1024 == 0 and memory_mib else f"{memory_mib:,} MiB"


def cpu_text(millicores: int) -> str:
    """CPU in words: ``4 cores``, ``1 core``, ``0.5 cores``."""
    return "1 core" if millicores == 1000 else f"{millicores / 1000:g} cores"


def _facts(plan: Plan) -> Iterator[tuple[str, Sequence[str]]]:
    totals = plan.totals
    pods = f"{_count(totals.executors, 'executor')}, {_count(totals.pods, 'pod')} with the driver"
    resources = f"{memory_text(totals.executor_memory_mib)} and {cpu_text(totals.executor_cpu_millicores)} for the executors"
    yield "in total", [f"{pods}; {resources}"]
    yield "per slot", [f"{memory_text(plan.per_slot.memory_mib)} and {cpu_text(plan.per_slot.cpu_millicores)}"]
    yield "in Spark", [f"{_count(plan.tasks_at_a_time, 'task')} at a time, stage after stage: {_stages(plan)}"]
    operators = _count(totals.subtasks // plan.parallelism.value, "operator")
    yield "in Flink", [f"{_count(totals.subtasks, 'subtask')}: {operators} x a parallelism of {plan.parallelism.value}"]
    if plan.kafka.topics:
        yield "topics", [", ".join(f"{topic} {_count(count, 'partition')}" for topic, count in plan.kafka.topics.items())]
    if plan.notes:
        yield "notes", plan.notes


def _stages(plan: Plan) -> str:
    return ", ".join(f"{stage.name} {stage.tasks:,}" for stage in plan.stages)


def _pod_rows(plan: Plan) -> list[list[str]]:
    pods = [("driver", plan.pods.driver), ("executor", plan.pods.executor)]
    optional = [
        ("off-heap", [memory_text(pod.off_heap_mib) for _, pod in pods], any(pod.off_heap_mib for _, pod in pods)),
        ("python", [memory_text(pod.pyspark_mib) for _, pod in pods], any(pod.pyspark_mib for _, pod in pods)),
    ]
    columns = [
        ["pod", *(kind for kind, _ in pods)],
        ["count", *(f"{pod.count:,}" for _, pod in pods)],
        ["memory", *(memory_text(pod.memory_mib) for _, pod in pods)],
        ["heap", *(memory_text(pod.heap_mib) for _, pod in pods)],
        ["overhead", *(memory_text(pod.overhead_mib) for _, pod in pods)],
        *([title, *texts] for title, texts, shown in optional if shown),
        ["cpu", *(_cpu(pod) for _, pod in pods)],
        ["slots", *(f"{pod.slots:,}" if pod.slots else "-" for _, pod in pods)],
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def _cpu(pod: PlannedPod) -> str:
    limit = f", limit {cpu_text(pod.limit_cpu_millicores)}" if pod.limit_cpu_millicores is not None else ""
    return cpu_text(pod.request_cpu_millicores) + limit


def _table(rows: list[list[str]]) -> list[str]:
    """The rows as aligned text: the first column to the left, the others, which are numbers, to the right."""
    first, *others = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return ["  ".join(["", row[0].ljust(first), *(cell.rjust(width) for cell, width in zip(row[1:], others, strict=True))]) for row in rows]


def _labelled(label: str, lines: Sequence[str]) -> list[str]:
    indent = " " * _LABEL
    wrapped = [
        textwrap.fill(line, WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        for line in lines
    ]
    return [f"  {label:<{_LABEL - 2}}{wrapped[0][_LABEL:]}", *wrapped[1:]]


def _explained(explanation: Explanation) -> Iterator[str]:
    value = "none" if explanation.value is None else explanation.value
    yield f"{explanation.number} = {value}"
    yield _indented(explanation.rule)
    if explanation.inputs:
        yield _indented("with " + ", ".join(f"{name} {value}" for name, value in explanation.inputs.items()))


def _indented(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 4, break_long_words=False, break_on_hyphens=False)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
