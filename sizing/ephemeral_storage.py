"""The ephemeral storage of a pod, on its node's root volume: state, shuffle files, spilled rows, uploads, files and logs.

The kubelet counts the emptyDir volumes and the logs of a pod, and evicts one that exceeds its limit. Spark's local directory, where RocksDB
and shuffles write, is such a volume.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.sizing.units import MIB

# Source: the kubelet's containerLogMaxSize of 10Mi and containerLogMaxFiles of 5; twice, as it rotates only every ten seconds.
LOGS_MIB = 100
# Ours: /tmp with the native libraries that the JVM extracts, and the working directory with the jars and files that executors fetch.
TEMPORARY_MIB, WORK_MIB = 512, 512
# Ours: of a driver, in Spark's local directory: broadcast variables, and results of its own stages.
DRIVER_SCRATCH_MIB = 512
# Ours: until compaction drops the old files, and while snapshots that are being uploaded still refer to them.
COPIES_OF_THE_STATE = 2
# Of a state store besides its rows: RocksDB allocates 4 MiB for its manifest; measured with its logs and options: 4.2 MiB (2026-11-25).
STORE_MIB = 5
# Ours: where no load says how large the state is.
UNKNOWN_STATE_MIB = 2048
# Settings that say where Spark's local directory is. Source: Spark 4.3.0, LocalDirsFeatureStep and deploy/k8s/Config.scala.
_LOCAL_DIR = re.compile(r"spark\.kubernetes\.(driver|executor)\.volumes\.([^.]+)\.spark-local-dir-")
_IN_MEMORY = "spark.kubernetes.local.dirs.tmpfs"


class StorageNeeds(BaseModel):
    """Ephemeral storage of one pod, in MiB.

    Args:
        state_mib: RocksDB's files.
        shuffle_mib: shuffle files of a micro-batch; for a driver, what Spark writes there in its place.
        spill_mib: rows of a micro-batch that do not fit into memory.
        uploads_mib: buffers of the checkpoint's uploads.
        files_mib: other files in /tmp and in the working directory.
        logs_mib: of the container.
        needed_mib: the sum.
        known: whether all parts are known; otherwise some are assumed, and the pod has no limit unless the spec sets one.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    state_mib: int
    shuffle_mib: int
    spill_mib: int
    uploads_mib: int
    files_mib: int
    logs_mib: int
    needed_mib: int
    known: bool

    @property
    def scratch_mib(self) -> int:
        """What is in Spark's local directory."""
        return self.state_mib + self.shuffle_mib + self.spill_mib


class VolumeLimits(BaseModel):
    """The ``sizeLimit`` of a pod's emptyDir volumes, in MiB; None: no limit.

    Args:
        scratch_mib: Spark's local directory.
        temporary_mib: /tmp.
        work_mib: the working directory.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    scratch_mib: int | None
    temporary_mib: int | None
    work_mib: int | None


class Written(BaseModel):
    """What the executors of a job write to their disks; None: not known.

    Args:
        state_bytes: RocksDB's state of the whole job, one version.
        stores: state stores of the whole job.
        batch_bytes: rows of the largest micro-batch, of all queries.
        changed_bytes: state rows that a micro-batch changes.
        shuffles: shuffles that each row takes part in.
        known: whether `batch_bytes` is a limit.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    state_bytes: int | None
    stores: int
    batch_bytes: int
    changed_bytes: int | None
    shuffles: int
    known: bool


def executor_storage(written: Written, executors: int, *, local_dirs_elsewhere: bool = False) -> StorageNeeds:
    """The ephemeral storage of an executor. It has room for its share when another executor is lost.

    Args:
        written: what the executors write.
        executors: number of executors.
        local_dirs_elsewhere: whether Spark's local directory is not on the node's root volume.
    """
    left = max(1, executors - 1)
    stores_mib = -(-written.stores // left) * STORE_MIB
    state_bytes = 0 if written.state_bytes is None else written.state_bytes
    state_mib = stores_mib + _mib(COPIES_OF_THE_STATE * state_bytes, left)
    if written.state_bytes is None:
        state_mib += UNKNOWN_STATE_MIB
    shuffle_mib = _mib(written.shuffles * written.batch_bytes, left)
    spill_mib = _mib(written.batch_bytes, left)
    if local_dirs_elsewhere:
        state_mib = shuffle_mib = spill_mib = 0
    known = written.changed_bytes is not None and (local_dirs_elsewhere or (written.known and written.state_bytes is not None))
    return _sum(state_mib, shuffle_mib, spill_mib, _mib(written.changed_bytes or 0, left), known=known)


def driver_storage() -> StorageNeeds:
    """The ephemeral storage of a driver, which holds no rows and no state."""
    return _sum(0, DRIVER_SCRATCH_MIB, 0, 0, known=True)


def volume_limits(needs: StorageNeeds, limit_mib: int | None) -> VolumeLimits:
    """The limits of a pod's volumes, which add up to the pod's limit with its logs.

    Args:
        needs: of the pod.
        limit_mib: the pod's limit; None: none.
    """
    if limit_mib is None:
        return VolumeLimits(scratch_mib=None, temporary_mib=None, work_mib=WORK_MIB)
    temporary_mib = TEMPORARY_MIB + needs.uploads_mib
    rest_mib = limit_mib - temporary_mib - WORK_MIB - needs.logs_mib
    # Without room for it the pod's own limit holds.
    return VolumeLimits(scratch_mib=rest_mib if rest_mib > 0 else None, temporary_mib=temporary_mib, work_mib=WORK_MIB)


def has_own_local_dirs(conf: Mapping[str, str], kind: Literal["driver", "executor"]) -> bool:
    """Whether the settings of a job say where Spark's local directory is.

    Args:
        conf: Spark settings.
        kind: of which pod.
    """
    return _in_memory(conf) or bool(_volume_types(conf, kind))


def local_dirs_elsewhere(conf: Mapping[str, str]) -> bool:
    """Whether that of the executors is not on the node's root volume: in memory, on a claimed volume or in a directory of the host."""
    return _in_memory(conf) or bool(_volume_types(conf, "executor") - {"emptyDir"})


def _volume_types(conf: Mapping[str, str], kind: str) -> set[str]:
    found = (match for key in conf if (match := _LOCAL_DIR.match(key)))
    return {match.group(2) for match in found if match.group(1) == kind}


def _in_memory(conf: Mapping[str, str]) -> bool:
    return conf.get(_IN_MEMORY, "false").strip().lower() == "true"


def _mib(amount_bytes: int, executors: int) -> int:
    return -(-amount_bytes // (executors * MIB))


def _sum(state_mib: int, shuffle_mib: int, spill_mib: int, uploads_mib: int, *, known: bool) -> StorageNeeds:
    files_mib = TEMPORARY_MIB + WORK_MIB
    return StorageNeeds(
        state_mib=state_mib,
        shuffle_mib=shuffle_mib,
        spill_mib=spill_mib,
        uploads_mib=uploads_mib,
        files_mib=files_mib,
        logs_mib=LOGS_MIB,
        needed_mib=state_mib + shuffle_mib + spill_mib + uploads_mib + files_mib + LOGS_MIB,
        known=known,
    )
