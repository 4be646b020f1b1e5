"""The checkpoint of a job that does not run: empty, and without S3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from penstock.jobs.storage.checkpoint import BEFORE_THE_FIRST, BatchRecord, Checkpoint
from penstock.jobs.storage.offset_log import FixedSettings


class NoCheckpoint(Checkpoint):
    """A checkpoint in which nothing is and to which nothing can be written.

    Args:
        uri: ``s3a://bucket/folder``, which need not exist.
        objects: name -> text of what it has nevertheless.
        further: names of the further queries that have a checkpoint.
    """

    def __init__(self, uri: str, objects: Mapping[str, str] = MappingProxyType({}), further: Sequence[str] = ()) -> None:
        super().__init__(uri)
        self._objects = objects
        self._further = further

    def of_query(self, name: str) -> Checkpoint:
        """As `Checkpoint.of_query`."""
        return NoCheckpoint(f"{self.uri}/queries/{name}") if name else self

    def queries(self) -> list[str]:
        """As `Checkpoint.queries`."""
        return list(self._further)

    def identity(self) -> str:
        """As `Checkpoint.identity`."""
        return "00000000"

    def last_record(self) -> BatchRecord:
        """As `Checkpoint.last_record`."""
        return BEFORE_THE_FIRST

    def fixed_settings(self) -> FixedSettings:
        """As `Checkpoint.fixed_settings`: none."""
        return FixedSettings()

    def get(self, name: str) -> str | None:
        """As `Checkpoint.get`."""
        return self._objects.get(name)
