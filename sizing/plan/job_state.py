"""The state of a job and its checkpoint, with or without a load."""

from __future__ import annotations

from penstock.sizing.load.load_plan import LoadPlan
from penstock.sizing.planned import StatePlan
from penstock.sizing.spark_settings import SparkSettings
from penstock.sizing.state.checkpoint import SECONDS_PER_DAY, CheckpointSettings, checkpoint_traffic
from penstock.sizing.state.stores import Backend, join_format, state_stores, stores_per_partition
from penstock.sizing.targets import Targets

# Defaults of `penstock.jobs.spec`.
DEFAULT_BACKEND: Backend = "rocksdb"


def planned_state(targets: Targets, settings: SparkSettings, shuffle_partitions: int, load: LoadPlan | None) -> StatePlan:
    """State stores and checkpoint writes; with a load their bytes too.

    Args:
        targets: with the app's stateful operators.
        settings: settings of the job.
        shuffle_partitions: ``spark.sql.shuffle.partitions``.
        load: the plan for the job's load; None: no load.
    """
    if load is not None:
        return StatePlan(
            backend=load.state.backend,
            stores=load.state.stores,
            state_bytes=load.state.state_bytes,
            executor_heap_mib=load.state.executor_heap_mib,
            executor_native_mib=load.state.executor_native_mib,
            checkpoint=load.checkpoint,
        )
    backend = targets.state_backend or DEFAULT_BACKEND
    per_partition = stores_per_partition(targets.stateful_operators, join_format(backend))
    stores = state_stores(shuffle_partitions, per_partition)
    # A bounded run is assumed to run once a day, in one batch.
    trigger_s = float(SECONDS_PER_DAY) if targets.trigger_s is None else targets.trigger_s
    written = CheckpointSettings(backend=backend, incremental=targets.state_incremental, batches_retained=settings.batches_retained)
    return StatePlan(backend=backend, stores=stores, checkpoint=checkpoint_traffic(stores, trigger_s, written, queries=targets.queries))
