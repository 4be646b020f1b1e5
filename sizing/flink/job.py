"""A Flink job as deployed: the baseline of a comparison."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from penstock.sizing.flink.memory import JobManagerMemory, TaskManagerMemory

Count = Annotated[int, Field(ge=1)]


class FlinkJob(BaseModel):
    """The processes and settings of a deployed Flink job.

    Args:
        name: name of the deployment.
        parallelism: parallelism of the job in the deployment; a value set in code takes precedence.
        slots: slots of one TaskManager.
        task_managers: number of TaskManager pods.
        task_manager: memory of one TaskManager.
        task_manager_cpu_millicores: CPU request of one TaskManager.
        task_manager_cpu_limit_millicores: CPU limit of one TaskManager.
        job_managers: number of JobManager pods; more than one with standbys.
        job_manager: memory of one JobManager.
        job_manager_cpu_millicores: CPU request of one JobManager.
        job_manager_cpu_limit_millicores: CPU limit of one JobManager.
        state_backend: ``rocksdb`` (in managed memory), ``hashmap`` (on the heap) or ``other``.
        checkpoint_interval_ms: None if the deployment sets none.
        max_parallelism: maximum parallelism of keyed state.
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
