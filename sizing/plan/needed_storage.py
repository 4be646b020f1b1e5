"""The ephemeral storage of a job's pods: what they need, and what the spec gives them."""

from __future__ import annotations

from typing import NamedTuple

from penstock.sizing.ephemeral_storage import StorageNeeds, Written, driver_storage, executor_storage, local_dirs_elsewhere
from penstock.sizing.load.load import Load
from penstock.sizing.plan.read_limit import RECORD_BYTES, assumed_records
from penstock.sizing.planned import PlannedPod, Pods, ReadLimit, StatePlan
from penstock.sizing.targets import DecidedTargets, Targets


class NeededStorage(NamedTuple):
    """What the pods need: the driver, and an executor."""

    driver: StorageNeeds
    executor: StorageNeeds


def needed_storage(targets: DecidedTargets, executor: PlannedPod, state: StatePlan, limit: ReadLimit | None) -> NeededStorage:
    """The ephemeral storage that the pods need.

    Args:
        targets: of the job.
        executor: its planned executors.
        state: its state.
        limit: the most records of a micro-batch; None: not limited by the plan.
    """
    elsewhere = local_dirs_elsewhere(targets.spark_conf)
    written = _written(targets, executor, state, limit)
    return NeededStorage(driver_storage(), executor_storage(written, executor.count, local_dirs_elsewhere=elsewhere))


def with_storage(pods: Pods, targets: DecidedTargets, needed: NeededStorage) -> Pods:
    """The pods with their requests and limits: what the spec gives them, otherwise what they need; no limit where that is not known."""
    driver = _with(pods.driver, needed.driver, targets.driver.storage_mib)
    executor = _with(pods.executor, needed.executor, targets.executor.storage_mib)
    return pods.model_copy(update={"driver": driver, "executor": executor})


def _with(pod: PlannedPod, needs: StorageNeeds, given_mib: int | None) -> PlannedPod:
    limit_mib = needs.needed_mib if given_mib is None and needs.known else given_mib
    request_mib = needs.needed_mib if given_mib is None else given_mib
    return pod.model_copy(update={"request_ephemeral_storage_mib": request_mib, "limit_ephemeral_storage_mib": limit_mib})


def _written(targets: DecidedTargets, executor: PlannedPod, state: StatePlan, limit: ReadLimit | None) -> Written:
    on_disk = state.backend == "rocksdb" and state.stores > 0
    records = assumed_records(targets, executor) if limit is None else limit.records
    return Written(
        state_bytes=_state_bytes(state) if on_disk else 0,
        stores=state.stores if on_disk else 0,
        batch_bytes=targets.queries * records * record_bytes(targets.load),
        changed_bytes=_changed_bytes(targets.load, state, records),
        shuffles=shuffles(targets),
        known=limit is not None,
    )


def record_bytes(load: Load | None) -> int:
    """The size of a row in a shuffle: as in Spark's cache, or as in Kafka, where records are compressed, if that is more."""
    return max(RECORD_BYTES, 0 if load is None else load.event_bytes)


def shuffles(targets: Targets) -> int:
    """The shuffles that each row takes part in: one for each stateful operator, and a repartition; at least one, as an app may have any."""
    return max(1, len(targets.stateful_operators) + (targets.stages.stateless is not None))


def _state_bytes(state: StatePlan) -> int | None:
    """The size of the state; None if there is no load, or if it does not say."""
    return state.state_bytes or None


def _changed_bytes(load: Load | None, state: StatePlan, records: int) -> int | None:
    """What a micro-batch uploads: its changes, or a snapshot of a state on the heap; None if the state's size is not known."""
    if not state.stores:
        return 0
    if load is None or not load.state_bytes:
        return None
    return load.state_bytes if state.backend == "memory" else min(load.state_keys, records) * load.bytes_per_key
