"""What a pod has on its disk, by what wrote it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict

_MIB = 1024 * 1024
# Source: stat(2), st_blocks.
_BLOCK_BYTES = 512
# Source: Spark 4.3.0: RocksDBStateStoreProvider's folders, IndexShuffleBlockResolver, DiskBlockManager's temporary blocks, which are
# spilled rows and shuffle files that are being written; Hadoop 3.5, S3ADataBlocks.
_STATE = re.compile(r"/StateStoreId\(|/StreamingStateStore|/spark-[^/]*/(working|checkpoint|rocksdb)", re.IGNORECASE)
_SHUFFLE = re.compile(r"/(shuffle_|temp_shuffle_)")
_SPILL = re.compile(r"/temp_local_")
_UPLOAD = re.compile(r"s3ablock")


class DiskUse(BaseModel):
    """A pod's files, in MiB.

    Args:
        state_mib: RocksDB's.
        shuffle_mib: shuffle files, also those that are being written, which include spilled rows of a shuffle's map side.
        spill_mib: other spilled rows.
        uploads_mib: buffers of uploads.
        files_mib: all others in Spark's local directory, in /tmp and in the working directory.
        logs_mib: its logs.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    state_mib: float = 0
    shuffle_mib: float = 0
    spill_mib: float = 0
    uploads_mib: float = 0
    files_mib: float = 0
    logs_mib: float = 0

    def most(self, other: DiskUse) -> DiskUse:
        """The greater of each."""
        return DiskUse(**{name: max(value, getattr(other, name)) for name, value in self.model_dump().items()})


def disk_use(folders: Iterable[Path], logs: Iterable[Path]) -> DiskUse:
    """The blocks that the files of a pod take.

    Args:
        folders: its disk.
        logs: its logs.
    """
    taken = dict.fromkeys(DiskUse.model_fields, 0)
    seen: set[tuple[int, int]] = set()
    for folder in folders:
        for root, _, names in os.walk(folder):
            for name in names:
                taken[_kind(f"{root}/{name}")] += _bytes(Path(root, name), seen)
    taken["logs_mib"] = sum(_bytes(log, seen) for log in logs)
    return DiskUse(**{name: size / _MIB for name, size in taken.items()})


def _kind(path: str) -> str:
    kinds = {"uploads_mib": _UPLOAD, "state_mib": _STATE, "shuffle_mib": _SHUFFLE, "spill_mib": _SPILL}
    return next((name for name, pattern in kinds.items() if pattern.search(path)), "files_mib")


def _bytes(file: Path, seen: set[tuple[int, int]]) -> int:
    """Of a file that may be gone; RocksDB's snapshots are links to the files of the state, which count once."""
    try:
        stat = file.lstat()
    except OSError:
        return 0
    identity = (stat.st_dev, stat.st_ino)
    if identity in seen:
        return 0
    seen.add(identity)
    return stat.st_blocks * _BLOCK_BYTES
