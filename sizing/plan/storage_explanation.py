"""Explanations of the pods' ephemeral storage and of its throughput, for ``--explain``."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sizing.disk_throughput import BYPASS_MERGE_PARTITIONS
from penstock.sizing.ephemeral_storage import (
    COPIES_OF_THE_STATE,
    DRIVER_SCRATCH_MIB,
    STORE_MIB,
    TEMPORARY_MIB,
    UNKNOWN_STATE_MIB,
    WORK_MIB,
    StorageNeeds,
)
from penstock.sizing.explained import Explanation
from penstock.sizing.plan.needed_storage import record_bytes, shuffles
from penstock.sizing.planned import Plan, PlannedPod
from penstock.sizing.targets import Targets


def explain_storage(targets: Targets, draft: Plan) -> Iterator[Explanation]:
    """One explanation per number."""
    yield from _pod("driver", draft.pods.driver, targets.driver.storage_mib)
    yield from _pod("executor", draft.pods.executor, targets.executor.storage_mib)
    yield from _state(draft)
    yield from _rows(targets, draft)
    yield _of("driverStorage.stateMib", 0, "a driver holds no state")
    yield _of("driverStorage.shuffleMib", DRIVER_SCRATCH_MIB, "broadcast variables and results, in Spark's local directory")
    yield _of("driverStorage.spillMib", 0, "a driver holds no rows")
    yield _of("driverStorage.uploadsMib", 0, "the logs of a checkpoint are small")
    for kind, needs in (("driver", draft.driver_storage), ("executor", draft.executor_storage)):
        yield from _fixed(f"{kind}Storage", needs)


def explain_throughput(draft: Plan) -> Iterator[Explanation]:
    """One explanation per number of an executor's disk throughput."""
    disk, state, at = draft.executor_disk, draft.state, "executorDisk"
    inputs: dict[str, int | float | str] = {"executors": draft.pods.executor.count, "load": "as specified"}
    if draft.throughput is None:
        inputs["load"] = "none: 0"
    else:
        inputs["eventsPerS"] = draft.throughput.target_events_per_s
    rule = (
        "target events/s * bytes of a record * queries * shuffles / executors, written and read; twice that with up to "
        f"{BYPASS_MERGE_PARTITIONS} shuffle partitions, as map tasks concatenate files"
    )
    yield _of(f"{at}.shuffleMibps", disk.shuffle_mibps, rule, **inputs)
    rule = "what of an executor's rows of a micro-batch exceeds Spark's memory / trigger, written and read"
    yield _of(f"{at}.spillMibps", disk.spill_mibps, rule, heapMib=draft.pods.executor.heap_mib)
    rule = (
        "state that changes per second / executors * RocksDB's write amplification, read back by compactions, and 4 KiB for each key that "
        "its cache does not hold; 0 on the heap"
    )
    yield _of(f"{at}.stateMibps", disk.state_mibps, rule, stores=state.stores, stateBytes=state.state_bytes or 0, backend=state.backend)
    yield _of(f"{at}.uploadsMibps", disk.uploads_mibps, "state that changes per second / executors, written and read")
    yield _of(f"{at}.mibps", disk.mibps, "the sum")
    rule = "256 KiB an operation; for shuffles a file and a block for each pair of tasks if that is more; keys that the cache does not hold"
    yield _of(f"{at}.iops", disk.iops, rule)


def _pod(kind: str, pod: PlannedPod, given_mib: int | None) -> Iterator[Explanation]:
    at = f"pods.{kind}"
    rule = f"{kind}.ephemeralStorage, as specified" if given_mib is not None else f"{kind}Storage.neededMib"
    yield _of(f"{at}.requestEphemeralStorageMib", pod.request_ephemeral_storage_mib, rule)
    if pod.limit_ephemeral_storage_mib is not None:
        yield _of(f"{at}.limitEphemeralStorageMib", pod.limit_ephemeral_storage_mib, "the request")


def _state(draft: Plan) -> Iterator[Explanation]:
    state, needs, executors = draft.state, draft.executor_storage, draft.pods.executor.count
    left = max(1, executors - 1)
    rule = (
        f"RocksDB's files: {COPIES_OF_THE_STATE} copies of the state and {STORE_MIB} MiB a store, / (executors - 1, at least 1), as one "
        f"may be lost; {UNKNOWN_STATE_MIB} MiB if the state's size is not known"
    )
    yield _of("executorStorage.stateMib", needs.state_mib, rule, stateBytes=state.state_bytes or 0, stores=state.stores, executors=left)
    rule = "buffers of the checkpoint's uploads: the state that a micro-batch changes, / (executors - 1, at least 1)"
    yield _of("executorStorage.uploadsMib", needs.uploads_mib, rule, executors=left)


def _rows(targets: Targets, draft: Plan) -> Iterator[Explanation]:
    needs, executors = draft.executor_storage, draft.pods.executor.count
    inputs: dict[str, int | float | str] = {"recordBytes": record_bytes(targets.load), "queries": targets.queries}
    inputs["records"] = "assumed" if draft.read_limit is None else draft.read_limit.records
    inputs["executors"] = max(1, executors - 1)
    rule = "records of a micro-batch * bytes of a record * queries * shuffles / (executors - 1, at least 1), without compression"
    yield _of("executorStorage.shuffleMib", needs.shuffle_mib, rule, shuffles=shuffles(targets), **inputs)
    rule = "records of a micro-batch * bytes of a record * queries / (executors - 1, at least 1)"
    yield _of("executorStorage.spillMib", needs.spill_mib, rule, **inputs)


def _fixed(at: str, needs: StorageNeeds) -> Iterator[Explanation]:
    yield _of(f"{at}.filesMib", needs.files_mib, f"{TEMPORARY_MIB} MiB in /tmp and {WORK_MIB} MiB in the working directory")
    yield _of(f"{at}.logsMib", needs.logs_mib, "the kubelet keeps 5 files of 10 MiB and rotates them every 10 s")
    yield _of(f"{at}.neededMib", needs.needed_mib, "the sum")


def _of(number: str, value: float, rule: str, /, **inputs: int | float | str) -> Explanation:
    return Explanation(number=number, value=value, rule=rule, inputs=inputs)
