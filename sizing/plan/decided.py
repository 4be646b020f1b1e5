"""Decides what targets leave to the load: the parallelism, and the executor's heap and overhead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.sizing.errors import BadSparkSetting, PenstockError
from penstock.sizing.executors import task_slots
from penstock.sizing.load.load_plan import ExecutorMemory
from penstock.sizing.load.parallelism import needed_slots
from penstock.sizing.load.planning import plan_load
from penstock.sizing.plan.agreement import executor_cores
from penstock.sizing.plan.job_shape import shape_of
from penstock.sizing.spark_settings import SparkSettings, spark_mib
from penstock.sizing.targets import DecidedTargets, ExecutorTarget, Parallelism, Targets
from penstock.sizing.units import NotAQuantity


class Decided(NamedTuple):
    """Targets without undecided values.

    Args:
        targets: with a parallelism and an executor's memory.
        settings: settings in sparkConf, with the load's overhead if sparkConf sets none.
        faults: SIZ-002 if that overhead is more than Spark accepts.
    """

    targets: DecidedTargets
    settings: SparkSettings
    faults: list[PenstockError]


def decided(targets: Targets, settings: SparkSettings) -> Decided:
    """Decides what the targets leave to their load; given values are kept.

    Args:
        targets: targets of the job.
        settings: its settings in sparkConf.
    """
    asked = _parallelism(targets)
    parallelism = asked.model_copy(update={"value": targets.stages.slots(asked.value)})
    notes = (*targets.notes, *_winner(targets), *_stages(targets, asked.value))
    fields = {name: getattr(targets, name) for name in Targets.model_fields}
    with_parallelism = DecidedTargets.model_validate({**fields, "parallelism": parallelism, "notes": notes})
    return _with_memory(with_parallelism, settings) if targets.executor.undecided else Decided(with_parallelism, settings, [])


def _parallelism(targets: Targets) -> Parallelism:
    if targets.parallelism is not None:
        return targets.parallelism
    # The targets' validation guarantees a load.
    assert targets.load is not None
    return Parallelism(value=needed_slots(targets.load, targets.trigger_s).slots, source="load")


def _with_memory(targets: DecidedTargets, settings: SparkSettings) -> Decided:
    """The executor for the load, with explicit heap and overhead, so that every launcher creates the same pod."""
    needed = _needed_memory(targets, settings)
    executor = ExecutorTarget.model_validate({**targets.executor.model_dump(), "heap_mib": needed.heap_mib})
    with_memory = targets.model_copy(update={"executor": executor, "memory_from_load": True})
    if settings.executor.overhead_mib is not None:
        return Decided(with_memory, settings, [])
    given = f"{needed.overhead_mib}m"
    try:
        overhead_mib = spark_mib(given)
    except NotAQuantity as fault:
        # It has no place in the document, so the fault is at the load.
        return Decided(with_memory, settings, [targets.locate(BadSparkSetting(given=given, need=fault.need, fix=fault.fix), "load")])
    own = settings.executor.model_copy(update={"overhead_mib": overhead_mib})
    return Decided(with_memory, settings.model_copy(update={"executor": own}), [])


def _needed_memory(targets: DecidedTargets, settings: SparkSettings) -> ExecutorMemory:
    assert targets.load is not None
    slots = max(1, task_slots(executor_cores(targets, settings), settings.task_cpus))
    shape = shape_of(targets, slots_per_executor=slots, shuffle_partitions=settings.shuffle_partitions)
    return plan_load(targets.load, shape).memory


def _winner(targets: Targets) -> Iterator[str]:
    """That the app's parallelism overrides the load's."""
    asked, place = targets.parallelism, targets.origins.get("load")
    if targets.load is None or asked is None or asked.at is None or place is None:
        return
    slots = needed_slots(targets.load, targets.trigger_s).slots
    yield f"PARALLELISM = {asked.value} in {asked.at} overrides the {slots} required by the load in {place.at}"


def _stages(targets: Targets, parallelism: int) -> Iterator[str]:
    """Notes which stage determines the slots, if any sets them."""
    given = targets.stages.by_kind
    if any(tasks is not None for tasks in given.values()):
        each = ", ".join(f"{kind} {tasks or f'{parallelism} (the parallelism)'}" for kind, tasks in given.items())
        place = targets.origins.get("stages")
        by = f", by {place.at}" if place else ""
        yield f"slots for the largest stage, {targets.stages.slots(parallelism)}: {each}{by}"
