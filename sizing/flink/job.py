"""A Flink job as its deployment sizes it: the side that a plan is compared with."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from penstock.sizing.flink.memory import JobManagerMemory, TaskManagerMemory

Count = Annotated[int, Field(ge=1)]


class FlinkJob(BaseModel):
    """What Flink starts for a job.

    Args:
        name: of the deployment.
        parallelism: of the job, as far as the deployment says it; one in code wins.
        slots: of one TaskManager.
        task_managers: pods that run tasks.
        task_manager: memory of one of them.
        task_manager_cpu_millicores: CPU request of one of them.
        task_manager_cpu_limit_millicores: CPU limit of one of them.
        job_managers: pods that coordinate; more than one where some stand by.
        job_manager: memory of one of them.
        job_manager_cpu_millicores: CPU request of one of them.
        job_manager_cpu_limit_millicores: CPU limit of one of them.
        state_backend: ``rocksdb`` (in managed memory), ``hashmap`` (on the heap) or ``other``.
        checkpoint_interval_ms: None where the deployment gives none.
        max_parallelism: how wide the job's keyed state can be spread.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    name: str
    parallelism: Count
    slots: Count
    task_managers: Count
    task_manager: TaskManagerMemory
    task_manager_cpu_millicores: Count
    task_manager_cpu_limit_millicores: Count
    job_managers: Count
    job_manager: JobManagerMemory
    job_manager_cpu_millicores: Count
    job_manager_cpu_limit_millicores: Count
    state_backend: Literal["rocksdb", "hashmap", "other"]
    checkpoint_interval_ms: Count | None
    max_parallelism: Count
