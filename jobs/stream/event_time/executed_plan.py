"""The partitions of a micro-batch's physical plan, once it has been executed: of the files that were read, and after repartitions.

Spark has no public API for them. The classes are those of Spark 4.3.0: FileSourceScanExec, ShuffleExchangeExec, and what adaptive query
execution wraps them in, AdaptiveSparkPlanExec and QueryStageExec; tests/jobs/spark/test_executed_plan.py holds them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

# ShuffleOrigin of DataFrame.repartition, with a number and without; the others are Spark's own.
_ASKED = ("REPARTITION_BY_NUM", "REPARTITION_BY_COL")


class FileScan(NamedTuple):
    """Files that a micro-batch has read.

    Args:
        address: URI of one of them.
        partitions: tasks that read them.
        files: their number.
        size_bytes: of all of them.
    """

    address: str
    partitions: int
    files: int
    size_bytes: int


class ExecutedPlan(NamedTuple):
    """What a physical plan says of its partitions.

    Args:
        scans: of files, those without any left out.
        repartitions: partitions after each repartition that the app asks for, in the order of execution.
    """

    scans: tuple[FileScan, ...]
    repartitions: tuple[int, ...]


def read_plan(plan: Any) -> ExecutedPlan:
    """The partitions of a plan.

    Args:
        plan: the JVM's SparkPlan, which has been executed.
    """
    scans, repartitions = [], []
    for node in _nodes(plan):
        kind = str(node.getClass().getSimpleName())
        if kind == "FileSourceScanExec":
            scans += list(_scan(node))
        elif kind == "ShuffleExchangeExec" and str(node.shuffleOrigin().toString()) in _ASKED:
            repartitions.append(int(node.numPartitions()))
    return ExecutedPlan(tuple(scans), tuple(repartitions))


def _scan(node: Any) -> Iterator[FileScan]:
    roots = node.relation().location().rootPaths()
    if not roots.isEmpty():
        metrics = node.metrics()
        # Evaluated by the execution, so that this only reads it.
        partitions = int(node.inputRDD().getNumPartitions())
        yield FileScan(
            str(roots.head().toString()), partitions, int(metrics.apply("numFiles").value()), int(metrics.apply("filesSize").value())
        )


def _nodes(plan: Any) -> Iterator[Any]:
    """The operators below a plan, inputs first."""
    kind = str(plan.getClass().getSimpleName())
    if kind == "AdaptiveSparkPlanExec":
        below = [plan.executedPlan()]
    elif kind.endswith("QueryStageExec"):
        below = [plan.plan()]
    else:
        children = plan.children()
        below = [children.apply(number) for number in range(children.size())]
    for one in below:
        yield from _nodes(one)
    yield plan
