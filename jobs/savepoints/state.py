"""Which files of a query's state a start needs, of those that Spark keeps for a hundred micro-batches.

The state of a version is the newest snapshot up to it and the changes since. A snapshot of RocksDB is an archive that names the files in
``SSTs/``. A file's name has an id if the checkpoint is of format 2, and ``commits/N`` has the ids that belong to micro-batch N: files with
others were written by a driver that had lost its job. Schemas and metadata are small and are all needed.

Source: Spark 4.3.0, RocksDBFileManager, RocksDBCheckpointMetadata, HDFSBackedStateStoreProvider, CommitMetadataV2.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from penstock.jobs.storage.offset_log import fixed_settings

_FILE = re.compile(r"(state/(\d+)/(\d+)/(?:(?!SSTs/|logs/|_)[^/]+/)?)(\d+)(?:_([0-9a-f-]+))?\.(changelog|zip|delta|snapshot)")
_SCHEMA = re.compile(r"state/\d+/(?:_metadata/metadata|_metadata/v2/(?P<batch>\d+)|_stateSchema/.+|\d+/(?:[^/]+/)?_metadata/.+)")
_SNAPSHOTS, _ARCHIVE = ("zip", "snapshot"), "zip"
# What Spark writes beside a file, of its content.
_CHECKSUM = ".crc"

Read = Callable[[str], bytes]


class StateIncomplete(Exception):
    """The listing does not have all of a version: it expires meanwhile, or is damaged."""


class _File(NamedTuple):
    """A file of a store in a partition."""

    name: str
    version: int
    id: str | None
    kind: str


@dataclass(frozen=True)
class StateFiles:
    """The files of a query's state.

    Args:
        names: of all files of the query's checkpoint.
        read: returns the content of one.
    """

    names: frozenset[str]
    read: Read

    def needed(self, batch: int) -> set[str]:
        """Names of the files that a start after a committed micro-batch needs.

        Raises:
            StateIncomplete: not all of them are there.
        """
        stores: dict[str, list[_File]] = defaultdict(list)
        places: dict[str, tuple[str, int]] = {}
        found = set(self._schemas(batch))
        for name in self.names:
            if match := _FILE.fullmatch(name):
                folder, operator, partition, version, id, kind = match.groups()
                stores[folder].append(_File(name, int(version), id, kind))
                places[folder] = operator, int(partition)
        ids = cache(self._ids)
        # A checkpoint whose state has been repartitioned to fewer has files of the others from before.
        partitions = fixed_settings(self.read(f"offsets/{batch}").decode()).shuffle_partitions
        for folder, files in stores.items():
            if partitions is not None and places[folder][1] >= partitions:
                continue

            def valid(file: _File, place: tuple[str, int] = places[folder]) -> bool:
                known = ids(file.version - 1).get(place) if file.id is not None else None
                return known is None or file.id in known

            found |= self._of_store(folder, [file for file in files if file.version <= batch + 1 and valid(file)], batch + 1)
        return found | {f"{name}{_CHECKSUM}" for name in found if f"{name}{_CHECKSUM}" in self.names}

    def _schemas(self, batch: int) -> Iterator[str]:
        for name in self.names:
            match = _SCHEMA.fullmatch(name)
            # What a driver has planned for a later micro-batch is not committed.
            if match and (match["batch"] is None or int(match["batch"]) <= batch):
                yield name

    def _of_store(self, folder: str, files: Sequence[_File], version: int) -> set[str]:
        """Of a store in a partition, whose files up to a version are given."""
        base = max((file.version for file in files if file.kind in _SNAPSHOTS), default=0)
        snapshots = [file for file in files if file.kind in _SNAPSHOTS and file.version == base]
        changes = [file for file in files if file.kind not in _SNAPSHOTS and file.version > base]
        lacking = set(range(base + 1, version + 1)) - {file.version for file in changes}
        if lacking:
            raise StateIncomplete(f"version {min(lacking)} of {folder}")
        archived = {name for file in snapshots if file.kind == _ARCHIVE for name in self._archived(folder, file.name)}
        return {file.name for file in (*snapshots, *changes)} | archived

    def _archived(self, folder: str, archive: str) -> set[str]:
        """The files that a snapshot of RocksDB names."""
        with zipfile.ZipFile(io.BytesIO(self.read(archive))) as opened:
            _, _, document = opened.read("metadata").decode().partition("\n")
        metadata = json.loads(document)
        tables = {f"{folder}SSTs/{file['dfsSstFileName']}" for file in metadata.get("sstFiles", [])}
        tables |= {f"{folder}logs/{file['dfsLogFileName']}" for file in metadata.get("logFiles", [])}
        if not tables <= self.names:
            raise StateIncomplete(f"{min(tables - self.names)}, which {archive} names")
        return tables

    def _ids(self, batch: int) -> dict[tuple[str, int], set[str]]:
        """Operator and partition -> the ids of their files of a committed micro-batch; empty where they are not known."""
        name = f"commits/{batch}"
        if name not in self.names:
            return {}
        _, _, document = self.read(name).decode().partition("\n")
        operators = json.loads(document).get("stateUniqueIds") or {}
        return {(operator, number): set(stores) for operator, partitions in operators.items() for number, stores in enumerate(partitions)}
