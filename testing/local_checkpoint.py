"""A checkpoint in a folder of this machine, of one driver at a time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.lease import Lease

# Spark's own manager for file systems without conditional writes. Source: Spark 4.3.0, CheckpointFileManager.scala.
FILE_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
_TOKEN = 1


class LocalCheckpoint(Checkpoint):
    """Penstock's own objects in a checkpoint, as files; Spark writes its files beside them.

    Args:
        folder: an absolute path; need not exist.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__("s3a://none/checkpoint", _TOKEN)
        self.uri = folder.as_uri()
        self._folder = str(folder)

    def of_query(self, name: str) -> Checkpoint:
        """As `Checkpoint.of_query`."""
        return LocalCheckpoint(Path(self._folder) / "queries" / name) if name else self

    def content(self, name: str) -> bytes | None:
        """As `Checkpoint.content`."""
        file = Path(self._folder, name)
        return file.read_bytes() if file.is_file() else None

    def put_once(self, name: str, text: str) -> bool:
        """As `Checkpoint.put_once`."""
        file = Path(self._key(name))
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            with file.open("x", encoding="utf-8") as new:
                new.write(text)
        except FileExistsError:
            return False
        return True

    def delete(self, name: str) -> None:
        """As `Checkpoint.delete`."""
        Path(self._key(name)).unlink(missing_ok=True)

    def delete_all(self, names: Sequence[str]) -> None:
        """As `Checkpoint.delete_all`."""
        for name in names:
            self.delete(name)

    def _with_etag(self, key: str) -> tuple[str, str] | None:
        file = Path(key)
        return (file.read_text(encoding="utf-8"), "") if file.is_file() else None

    def _replaced(self, name: str, text: str, token: int) -> bool:
        Path(self._key(name)).write_text(text, encoding="utf-8")
        return True

    def _names(self, folder: str) -> list[str]:
        parent = Path(self._folder, folder)
        return sorted(file.relative_to(parent).as_posix() for file in parent.rglob("*") if file.is_file())

    def _folders(self, parent: str) -> list[str]:
        folder = Path(self._folder, parent)
        return sorted(one.name for one in folder.iterdir() if one.is_dir()) if folder.is_dir() else []


class OnlyDriver(Lease):
    """The lease of a checkpoint that no other driver knows."""

    def __init__(self) -> None:
        self.token = _TOKEN
        self.over = threading.Event()
        self.idle = False

    @property
    def lost(self) -> bool:
        """As `Lease.lost`: never."""
        return False

    @property
    def sure(self) -> bool:
        """As `Lease.sure`: always."""
        return True

    def check(self) -> None:
        """As `Lease.check`: goes on."""

    def confirm(self) -> None:
        """As `Lease.confirm`: goes on."""

    def stopping(self) -> None:
        """As `Lease.stopping`: nobody waits."""

    def release(self) -> None:
        """As `Lease.release`."""
        self.over.set()
