"""How many executors a parallelism takes, and how the work is counted: by Flink in subtasks, by Spark in the tasks of its stages."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Stage(BaseModel):
    """A stage of one micro-batch as Spark runs it.

    Args:
        name: in words.
        kind: ``read`` for a topic's read, ``shuffle`` for what comes after a shuffle.
        tasks: one a topic partition or more, or one a shuffle partition.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    name: str
    kind: Literal["read", "shuffle"]
    tasks: int


def task_slots(executor_cores: int, task_cpus: Decimal) -> int:
    """Tasks that an executor runs at the same time; CPU requests have no part in it.

    Args:
        executor_cores: ``spark.executor.cores``.
        task_cpus: ``spark.task.cpus``, above 0.

    Returns:
        Whole slots; 0 where one task takes more cores than the executor has, which Spark refuses.

    Source: Spark 4.1.1, ResourceProfile.calculateTasksAndLimitingResource; 4.3.0 takes a fraction for the task's CPUs.
    """
    return int(Decimal(executor_cores) // task_cpus)


def executor_count(parallelism: int, slots: int) -> int:
    """Executors for a parallelism, by the rule that Flink has for its TaskManagers: max(1, ceil(parallelism / slots)).

    Args:
        parallelism: 1 or more.
        slots: task slots of one executor, 1 or more.
    """
    return max(1, -(-parallelism // slots))


def subtasks(operators: int, parallelism: int) -> int:
    """Subtasks as Flink counts them: every operator runs once for each unit of the parallelism."""
    return operators * parallelism


# What comes after the rows were dealt out anew.
REPARTITIONED = "rows before the state"


def stages(
    read_partitions: Mapping[str, int],
    shuffle_partitions: int,
    *,
    readers: Mapping[str, int] | None = None,
    stateless: int | None = None,
) -> tuple[Stage, ...]:
    """The stages of a micro-batch: one read a topic, and any number of stages of the same size after a shuffle.

    Args:
        read_partitions: topic -> partitions.
        shuffle_partitions: ``spark.sql.shuffle.partitions``.
        readers: topic -> least tasks that read it: Spark splits partitions for them (``minPartitions``).
        stateless: tasks that the rows are dealt out to before the first state; None: they are not.
    """
    reads = [
        Stage(name=f"read {topic}", kind="read", tasks=max(count, (readers or {}).get(topic, 1)))
        for topic, count in read_partitions.items()
    ]
    repartition = [] if stateless is None else [Stage(name=REPARTITIONED, kind="shuffle", tasks=stateless)]
    return (*reads, *repartition, Stage(name="each stage after a shuffle", kind="shuffle", tasks=shuffle_partitions))


def tasks_at_a_time(total_slots: int, planned: tuple[Stage, ...]) -> int:
    """The most tasks that run at the same time: as many as there are slots, or as there are tasks.

    Spark runs stage after stage; only the reads of several topics don't wait for one another.

    Args:
        total_slots: of all executors.
        planned: the stages of a micro-batch.
    """
    reads = sum(stage.tasks for stage in planned if stage.kind == "read")
    widest = max((stage.tasks for stage in planned if stage.kind == "shuffle"), default=0)
    return min(total_slots, max(reads, widest))
