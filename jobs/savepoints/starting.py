"""A new checkpoint is filled with a savepoint, and differs from it in what belongs to one checkpoint alone.

- ``penstock/identity`` is new, for every query: it is in the names of files, transactions and idempotency keys. The checkpoint that the
  savepoint is of has gone on, so the next micro-batches of both have the same numbers and other rows.
- ``metadata`` has a new id of the query, by which Spark keeps two of one id from running at once.
- Files that were open at the savepoint, and that the old checkpoint of the same job has published since, are not open any more: their rows
  are written. Where the old checkpoint is gone, or is another job's, nobody knows, and they are published again.
- Spark's metadata of state have absolute URIs of the schemas in ``_stateSchema/``: those of the new folder.
- Where the topics are read on at other offsets, these stand in for the savepoint's: `penstock.jobs.savepoints.other_offsets`.

Nothing else names a checkpoint's folder. The marker ``penstock/origin.json`` is written first and the identity of the first query last: a
checkpoint with the marker alone is not complete, and is filled again by the same start, and passed over by any other. So is one whose state
was being repartitioned, which its marker ``penstock/repartitioning`` says: Spark changes it in place.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from penstock.jobs.savepoints.copying import Copier, each, sha256
from penstock.jobs.savepoints.errors import SavepointOfAnotherJob, StateNotRestored
from penstock.jobs.savepoints.folder import SavepointFolder
from penstock.jobs.savepoints.manifest import SavedObject, Savepoint
from penstock.jobs.savepoints.other_offsets import Change
from penstock.jobs.sinks.part_log import Manifest, PartLog
from penstock.jobs.spec.initial_offsets import InitialOffsets
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.continuation import SavepointStart
from penstock.jobs.storage.generation import ORIGIN, Origin
from penstock.jobs.storage.objects import Folder
from penstock.jobs.storage.s3 import shared_client

_IDENTITY = "identity"
# Exists in a checkpoint from before its state is repartitioned on.
_REPARTITIONING = "repartitioning"
_METADATA = re.compile(r"(?:queries/[^/]+/)?metadata")
_DECISION = re.compile(r"(?:queries/([^/]+)/)?penstock/sinks/([^/]+)/log/(\d+)\.json")
_STATE = re.compile(r"((?:queries/[^/]+/)?state/\d+/)_metadata/(?:metadata|v2/\d+)")


def mark_repartitioning(checkpoint: Checkpoint) -> None:
    """Says of a checkpoint that its state is being repartitioned. Until its generation begins, each start fills it again.

    Raises:
        PenstockError: JOB-009, JOB-082.
    """
    checkpoint.put_once(_REPARTITIONING, "")


def refuse_another_job(savepoint: Savepoint, uri: str, job: str, start: SavepointStart) -> None:
    """Raises if a savepoint is of another job and nobody has agreed to that.

    Raises:
        SavepointOfAnotherJob: JOB-098.
    """
    if savepoint.job != job and not start.of_another_job:
        raise SavepointOfAnotherJob(
            path=uri,
            given=savepoint.whose,
            need=f"a savepoint of {job}",
            fix="another one; or, if this job is to begin with the state and the offsets of that one, start from it with --fork",
        )


def refuse_lost_queries(savepoint: Savepoint, start: SavepointStart, queries: Sequence[str]) -> None:
    """Raises if a savepoint has queries that an app does not have, and nobody has agreed to that.

    Args:
        savepoint: its manifest.
        start: from it.
        queries: of the app; the first one's name is empty.

    Raises:
        StateNotRestored: JOB-099.
    """
    lost = sorted(savepoint.queries.keys() - set(queries))
    if lost and not start.allow_non_restored_state:
        given = ", ".join(query or "the first query" for query in queries)
        fix = "an app with these queries; or, to lose their state, allowNonRestoredState: true, or --allow-non-restored-state"
        need = f"{', '.join(query or 'the first query' for query in lost)}, too, as the savepoint has"
        raise StateNotRestored(path=start.uri, given=given, need=need, fix=fix)


@dataclass(frozen=True)
class Filling:
    """Fills a checkpoint.

    Args:
        checkpoint: the new one.
        folder: of the savepoint.
        savepoint: its manifest.
        generation: number of the generation that begins with it.
        offsets: where its topics are read on at, instead of at its own offsets.
        changes: finds out which objects differ for that, name -> of its content; raises what prevents it.
    """

    checkpoint: Checkpoint
    folder: SavepointFolder
    savepoint: Savepoint
    generation: int
    offsets: InitialOffsets | None = None
    changes: Callable[[], Mapping[str, Change]] = dict

    def fill(self, said: Callable[[int], object] = lambda _: None) -> None:
        """Copies and compares everything, unless that is done already.

        Args:
            said: called with the number of objects that are copied.

        Raises:
            SavepointDamaged: JOB-096.
            PenstockError: JOB-009, JOB-082, and those of `changes`.
        """
        self.folder.verify(self.savepoint)
        if self.checkpoint.get(_REPARTITIONING) is not None:
            self._empty()
        begun = self.checkpoint.get(ORIGIN) is not None
        if begun and self.checkpoint.get(_IDENTITY) is not None:
            return
        changes = self.changes()
        self.checkpoint.put_once(ORIGIN, Origin(savepoint=self.folder.uri, generation=self.generation, offsets=self.offsets).text)
        copier = Copier(shared_client(), self.folder.data(self.savepoint).uri, self.checkpoint.uri)
        each(lambda one: self._filled(copier, one, changes.get(one.name)), self.savepoint.objects, said)
        for one in self.savepoint.objects:
            if match := _DECISION.fullmatch(one.name):
                self._close_published(copier, one, match[1] or "", match[2], int(match[3]))
        for query in sorted(self.savepoint.queries, reverse=True):
            self.checkpoint.of_query(query).identity()
        self.checkpoint.identity()

    def _empty(self) -> None:
        """Deletes what a driver has left that ended while it repartitioned the state."""
        # Without its identity the checkpoint is not complete, and with the marker the next driver does this again.
        self.checkpoint.delete(_IDENTITY)
        keep = {f"penstock/{name}" for name in (ORIGIN, _REPARTITIONING)}
        Folder(self.checkpoint.uri).delete_all([name for name in self.checkpoint.listed() if name not in keep])
        self.checkpoint.delete(_REPARTITIONING)

    def _filled(self, copier: Copier, one: SavedObject, change: Change | None) -> None:
        if change is not None:
            copier.put(one.name, change(self._read(one)))
        elif _METADATA.fullmatch(one.name):
            self._read(one)
            copier.put(one.name, json.dumps({"id": str(uuid.uuid4())}, separators=(",", ":")).encode())
        elif match := _STATE.fullmatch(one.name):
            copier.put(one.name, with_schemas_in(self._read(one), f"{self.checkpoint.uri}/{match[1]}"))
        else:
            self._compare(one, copier.copy(one.name))

    def _close_published(self, copier: Copier, one: SavedObject, query: str, sink: str, decision: int) -> None:
        """Leaves out of a file sink's decision the open files that later decisions of the old checkpoint have published."""
        if not self.savepoint.checkpoint.startswith(f"{self.checkpoint.uri.rpartition('/')[0]}/"):
            return
        manifest = Manifest.model_validate_json(self._read(one))
        log = PartLog(Checkpoint(self.savepoint.checkpoint).of_query(query), sink)
        left = manifest.without({name for later in log.published_after(decision) for name in later.used})
        if left != manifest:
            copier.put(one.name, left.model_dump_json().encode())

    def _read(self, one: SavedObject) -> bytes:
        content = self.folder.data(self.savepoint).content(one.name)
        self._compare(one, None if content is None else sha256(content))
        return content or b""

    def _compare(self, one: SavedObject, checksum: str | None) -> None:
        if checksum != one.sha256:
            given = "none" if checksum is None else f"SHA-256 {checksum}"
            raise self.folder.damaged(self.savepoint, one.name, given, f"SHA-256 {one.sha256}")


def with_schemas_in(metadata: bytes, folder: str) -> bytes:
    """Spark's metadata of an operator whose checkpoint is in another folder.

    Args:
        metadata: a line with the version, and the document.
        folder: of the operator's state, ``s3a://bucket/.../state/<operator>/``.
    """
    version, _, text = metadata.decode().partition("\n")
    document = json.loads(text)
    for store in document.get("stateStoreInfo", []):
        paths = store.get("stateSchemaFilePaths")
        if paths is not None:
            store["stateSchemaFilePaths"] = [f"{folder}_stateSchema/{path.rpartition('/_stateSchema/')[2]}" for path in paths]
    return f"{version}\n{json.dumps(document, separators=(',', ':'))}".encode()
