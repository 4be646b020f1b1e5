"""The number of executors for a parallelism, and how work is counted: in subtasks by Flink, in tasks of its stages by Spark."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Stage(BaseModel):
    """A stage of one Spark micro-batch.

    Args:
        name: description.
        kind: ``read`` for reading a topic, ``files`` for reading files, ``shuffle`` for a stage after a shuffle.
        tasks: one or more per topic partition, one per partition of files, or one per shuffle partition.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    name: str
    kind: Literal["read", "files", "shuffle"]
    tasks: int


def task_slots(executor_cores: int, task_cpus: Decimal) -> int:
    """Tasks that an executor runs at the same time, regardless of CPU requests.

    Args:
        executor_cores: ``spark.executor.cores``.
        task_cpus: ``spark.task.cpus``, above 0.

    Returns:
        Whole slots; 0 if one task needs more cores than the executor has, which Spark rejects.

    Source: Spark 4.1.1, ResourceProfile.calculateTasksAndLimitingResource; 4.3.0 accepts a fraction for the task's CPUs.
    """
    return int(Decimal(executor_cores) // task_cpus)


def executor_count(parallelism: int, slots: int) -> int:
    """Executors for a parallelism, by Flink's rule for TaskManagers: max(1, ceil(parallelism / slots)).

    Args:
        parallelism: 1 or more.
        slots: task slots of one executor, 1 or more.
    """
    return max(1, -(-parallelism // slots))


def subtasks(operators: int, parallelism: int) -> int:
    """Subtasks as Flink counts them: each operator runs once per unit of parallelism."""
    return operators * parallelism


# The stages after rows are repartitioned.
REPARTITIONED = "rows before the state"


def stages(
    read_partitions: Mapping[str, int],
    shuffle_partitions: int,
    *,
    readers: Mapping[str, int] | None = None,
    stateless: int | None = None,
    files: Mapping[str, int] | None = None,
) -> tuple[Stage, ...]:
    """The stages of a micro-batch: one read stage per topic and per source of files, and any number of equal stages after a shuffle.

    Args:
        read_partitions: topic -> partitions.
        shuffle_partitions: ``spark.sql.shuffle.partitions``.
        readers: topic -> minimum number of read tasks, for which Spark splits partitions (``minPartitions``).
        stateless: tasks that rows are repartitioned to before the first stateful operator; None: no repartition.
        files: source of files, of those whose files are known -> tasks that read them.
    """
    reads = [
        Stage(name=f"read {topic}", kind="read", tasks=max(count, (readers or {}).get(topic, 1)))
        for topic, count in read_partitions.items()
    ]
    repartition = [] if stateless is None else [Stage(name=REPARTITIONED, kind="shuffle", tasks=stateless)]
    splits = [Stage(name=f"read {name}", kind="files", tasks=tasks) for name, tasks in (files or {}).items()]
    return (*reads, *splits, *repartition, Stage(name="each stage after a shuffle", kind="shuffle", tasks=shuffle_partitions))


def tasks_at_a_time(total_slots: int, planned: tuple[Stage, ...]) -> int:
    """The maximum number of concurrent tasks: the number of slots or of tasks, whichever is lower.

    Spark runs one stage after another; only the reads of several sources run concurrently.

    Args:
        total_slots: slots of all executors.
        planned: the stages of a micro-batch.
    """
    reads = sum(stage.tasks for stage in planned if stage.kind in ("read", "files"))
    widest = max((stage.tasks for stage in planned if stage.kind == "shuffle"), default=0)
    return min(total_slots, max(reads, widest))
