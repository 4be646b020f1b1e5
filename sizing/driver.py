"""The memory that a driver needs: for the tasks that it schedules and remembers, for its topics' partitions, and for its queries.

Source of the constants: `benchmarks.driver_memory` on 2026-11-25, Spark 4.3.0, rounded up; docs/sizing.md has the table.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.sizing.executors import Stage
from penstock.sizing.spark_settings import RETAINED_STAGES, SparkSettings
from penstock.sizing.units import MIB

# What stays on the heap after a collection: of a session, and of each query with its progress.
SESSION_MIB = 100
QUERY_MIB = 40
# Of a task that Spark's status store remembers, and of one of a stage that runs.
TASK_BYTES = 640
# Source: Spark 4.3.0, spark.sql.streaming.numRecentProgressUpdates: 100, each with 3 offsets of a partition, of about 16 bytes.
PARTITION_BYTES = 100 * 3 * 16
# Ours: as much again for what a micro-batch makes and drops.
HEAP_PER_LIVE = 2
# Ours: Spark remembers the tasks of its last 1,000 stages (spark.ui.retainedStages), however many they have; a plan with larger stages has
# it remember about so many tasks.
REMEMBERED_TASKS = 500_000
LEAST_REMEMBERED_STAGES = 10


class DriverNeeds(BaseModel):
    """The memory that a driver needs.

    Args:
        batch_tasks: tasks of a micro-batch, of all queries.
        partitions: partitions of the topics that it reads, for each query.
        remembered_tasks: tasks of ended stages that Spark's status store keeps.
        heap_mib: heap for them.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    batch_tasks: int
    partitions: int
    remembered_tasks: int
    heap_mib: int


def remembered_stages(stages: Sequence[Stage], settings: SparkSettings) -> int:
    """The stages that Spark's status store keeps: as set, otherwise Spark's default, or fewer if they have many tasks.

    Args:
        stages: stages of a micro-batch.
        settings: settings of the job.
    """
    if settings.retained_stages is not None:
        return settings.retained_stages
    mean = max(1, -(-sum(stage.tasks for stage in stages) // max(1, len(stages))))
    return min(RETAINED_STAGES, max(LEAST_REMEMBERED_STAGES, REMEMBERED_TASKS // mean))


def driver_needs(stages: Sequence[Stage], queries: int, settings: SparkSettings) -> DriverNeeds:
    """The memory that a driver needs.

    Args:
        stages: stages of a micro-batch of one query.
        queries: queries of the job.
        settings: settings of the job.
    """
    batch = sum(stage.tasks for stage in stages)
    partitions = queries * sum(stage.tasks for stage in stages if stage.kind == "read")
    kept = sum(min(stage.tasks, settings.retained_tasks) for stage in stages)
    remembered = -(-remembered_stages(stages, settings) * kept // max(1, len(stages)))
    counted = (queries * batch + remembered) * TASK_BYTES + partitions * PARTITION_BYTES
    live_mib = SESSION_MIB + queries * QUERY_MIB + -(-counted // MIB)
    return DriverNeeds(batch_tasks=queries * batch, partitions=partitions, remembered_tasks=remembered, heap_mib=HEAP_PER_LIVE * live_mib)
