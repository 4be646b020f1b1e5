"""The writes of a job's checkpoint: objects, PUT-class requests and retained storage.

Source: the layout of Spark 4.1.1's checkpoints: two logs per batch (offsets, commits), one file per store and batch, with an additional
checksum file since 4.1; snapshots about every ten versions.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from penstock.sizing.spark_settings import MIN_BATCHES_TO_RETAIN
from penstock.sizing.state.errors import CheckpointTooBusy
from penstock.sizing.state.stores import Backend
from penstock.sizing.violation import Violation, violated

SECONDS_PER_DAY = 86_400
# The month of the reference results for checkpoints; `penstock.sizing.cost` uses AWS's month of 730 hours.
DAYS_PER_MONTH = 30
LOGS_PER_BATCH = 2
# Source: Spark 4.1.1, spark.sql.streaming.stateStore.minDeltasForSnapshot.
VERSIONS_PER_SNAPSHOT = 10
# Assumed: the files that RocksDB uploads with a snapshot after compaction, in addition to its zip; depends on how the state changes.
SST_FILES_PER_SNAPSHOT = 2
# Ours: the size of RocksDB's files relative to the live rows, until compaction drops the old ones.
ROCKSDB_SPACE_AMPLIFICATION = 2
# Source: Amazon S3 User Guide, "Best practices design patterns": at least 3,500 PUT-class requests per second per prefix.
S3_PUTS_PER_S = 3500
# Source: hadoop-aws and spark-hadoop-cloud: a rename on S3 is a copy after the PUT; an abortable stream is a single PUT.
REQUESTS_PER_OBJECT: dict[Literal["rename", "abortable"], int] = {"rename": 2, "abortable": 1}

Manager = Literal["rename", "abortable"]


class CheckpointSettings(BaseModel):
    """How the checkpoint is written; the defaults are those of Penstock's sessions.

    Args:
        backend: state backend.
        incremental: RocksDB's changelog checkpointing; without it every batch uploads a snapshot. The memory backend always writes
            deltas.
        checksums: a checksum file for each state file, Spark's default since 4.1.
        manager: ``abortable`` (Penstock's, and the one of spark-hadoop-cloud that it extends), or ``rename``.
        sst_files_per_snapshot: files that RocksDB uploads with a snapshot.
        batches_retained: micro-batches whose state is kept (``spark.sql.streaming.minBatchesToRetain``).
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    backend: Backend = "rocksdb"
    incremental: bool = True
    checksums: bool = True
    manager: Manager = "abortable"
    sst_files_per_snapshot: Annotated[int, Field(ge=0, le=1000)] = SST_FILES_PER_SNAPSHOT
    batches_retained: Annotated[int, Field(ge=1)] = MIN_BATCHES_TO_RETAIN


class CheckpointTraffic(BaseModel):
    """The writes of a checkpoint; the rates are means, so they may be fractions.

    Args:
        objects_per_batch: objects per batch, without snapshots.
        objects_per_day: objects per day, without snapshots.
        snapshot_objects_per_day: objects of snapshots, in addition.
        requests_per_batch: PUT-class requests, without snapshots.
        requests_per_day: PUT-class requests, snapshots included; a lower bound, because large files are uploaded in parts.
        requests_per_month: PUT-class requests in 30 days.
        storage_bytes: estimated retained storage.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    objects_per_batch: int
    objects_per_day: float
    snapshot_objects_per_day: float
    requests_per_batch: int
    requests_per_day: float
    requests_per_month: float
    storage_bytes: int


def checkpoint_traffic(
    stores: int,
    trigger_s: float,
    settings: CheckpointSettings | None = None,
    *,
    queries: int = 1,
    state_bytes: int = 0,
    changed_bytes_per_batch: int = 0,
) -> CheckpointTraffic:
    """Computes the writes of a checkpoint.

    Args:
        stores: state stores of all queries; 0 without state.
        trigger_s: trigger interval, above 0.
        settings: how it is written.
        queries: queries of the job, each with logs of its own, 1 or more.
        state_bytes: state of the whole job, one version.
        changed_bytes_per_batch: bytes of state rows that a batch changes.
    """
    settings = settings or CheckpointSettings()
    batches = SECONDS_PER_DAY / trigger_s
    managed, uploaded = _state_objects(stores, settings)
    logs = queries * LOGS_PER_BATCH
    snapshots = stores * batches / VERSIONS_PER_SNAPSHOT if _snapshots_apart(settings) else 0.0
    with_sum = 2 if settings.checksums else 1
    sst = settings.sst_files_per_snapshot if settings.backend == "rocksdb" else 0
    per_object = REQUESTS_PER_OBJECT[settings.manager]
    requests_per_batch = (logs + managed) * per_object + uploaded
    requests_per_day = requests_per_batch * batches + snapshots * (with_sum * per_object + sst)
    return CheckpointTraffic(
        objects_per_batch=logs + managed + uploaded,
        objects_per_day=(logs + managed + uploaded) * batches,
        snapshot_objects_per_day=snapshots * (with_sum + sst),
        requests_per_batch=requests_per_batch,
        requests_per_day=requests_per_day,
        requests_per_month=requests_per_day * DAYS_PER_MONTH,
        storage_bytes=_storage_bytes(settings, state_bytes, changed_bytes_per_batch) if stores else 0,
    )


def least_whole_trigger_s(traffic: CheckpointTraffic, puts_per_s: float = S3_PUTS_PER_S) -> int:
    """The shortest trigger, in whole seconds, in which the objects of a micro-batch are written; arguments as `checkpoint_violations`."""
    return int(traffic.requests_per_batch / puts_per_s) + 1


def checkpoint_violations(traffic: CheckpointTraffic, trigger_s: float, puts_per_s: float = S3_PUTS_PER_S) -> list[Violation]:
    """Returns SIZ-044 if the objects of a batch cannot be written before the next batch starts.

    Args:
        traffic: writes of the checkpoint.
        trigger_s: trigger interval.
        puts_per_s: request rate that the object store accepts per prefix; S3 raises it automatically under sustained load.
    """
    least_s = traffic.requests_per_batch / puts_per_s
    if least_s <= trigger_s:
        return []
    need = f"{traffic.requests_per_batch:,} requests per micro-batch at {puts_per_s:,.0f} per second take {least_s:.1f} s"
    fix = f"trigger: {least_whole_trigger_s(traffic, puts_per_s)}s or longer, or fewer shuffle partitions"
    return [violated(CheckpointTooBusy, path="trigger", given=f"{trigger_s:g} s", need=need, fix=fix)]


def _state_objects(stores: int, settings: CheckpointSettings) -> tuple[int, int]:
    """Files of a batch written by the checkpoint manager, and files that RocksDB uploads directly, without a rename."""
    managed = stores * (2 if settings.checksums else 1)
    return managed, 0 if _snapshots_apart(settings) else stores * settings.sst_files_per_snapshot


def _snapshots_apart(settings: CheckpointSettings) -> bool:
    """Whether most batches write only changes; otherwise every batch is a snapshot."""
    return settings.backend == "memory" or settings.incremental


def _storage_bytes(settings: CheckpointSettings, state_bytes: int, changed_bytes: int) -> int:
    changes = settings.batches_retained * min(changed_bytes, state_bytes) if _snapshots_apart(settings) else 0
    if settings.backend == "rocksdb":
        # Snapshots share the files that compaction has not rewritten.
        return ROCKSDB_SPACE_AMPLIFICATION * state_bytes + changes
    return (settings.batches_retained // VERSIONS_PER_SNAPSHOT + 1) * state_bytes + changes
