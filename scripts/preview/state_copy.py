"""A copy of a job's state in another S3, as a savepoint from which a bounded run of the job starts. The job's own bucket is only read."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.jobs.savepoints.content import Needed
from penstock.jobs.savepoints.copying import each, sha256
from penstock.jobs.savepoints.errors import CheckpointMoves
from penstock.jobs.savepoints.folder import SavepointFolder
from penstock.jobs.savepoints.manifest import SavedObject, SavedQuery, Savepoint
from penstock.jobs.savepoints.state import StateIncomplete
from penstock.jobs.savepoints.taking import Gone, Taken, parts_of
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.query_record import QueryRecord
from penstock.scripts.progress import Step

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_ATTEMPTS, _PAUSE_S = 5, 1.0
_DATA = "data"
# What belongs to the sinks, which are others, and to the end of the input, which is another.
_LEFT = ("penstock/sinks/", "penstock/ends.json", "penstock/finished")


@dataclass(frozen=True)
class StateCopy:
    """Copies the state of a job.

    Args:
        checkpoint: of the job.
        of: whose it is, and as of when.
        target: folder of the copy.
        s3: client of the target.
    """

    checkpoint: Checkpoint
    of: Taken
    target: SavepointFolder
    s3: S3Client

    def take(self, step: Step) -> Mapping[str, SavedQuery]:
        """Copies it.

        Args:
            step: shows how far it is.

        Returns:
            Query -> the micro-batch that the copy is of.

        Raises:
            PenstockError: DEP-031, DEP-032, DEP-034, JOB-008, JOB-009.
        """
        why = ""
        for _ in range(_ATTEMPTS):
            try:
                return self._attempt(step)
            except (StateIncomplete, Gone) as error:
                why = str(error)
                step.watch(f"copied again: {why}")
                time.sleep(_PAUSE_S)
        need = f"what a start needs, in {_ATTEMPTS} attempts"
        raise CheckpointMoves(
            path=self.checkpoint.uri, given=f"no {why}", need=need, fix="run it again; penstock inspect shows what it has"
        )

    def _attempt(self, step: Step) -> Mapping[str, SavedQuery]:
        parts = parts_of(self.checkpoint, self.checkpoint.listed(), self.of)
        names = [(query, name) for query, part in parts.items() for name in sorted(part.names) if not name.startswith(_LEFT)]
        copied = each(lambda one: self._copied(*one), names, lambda done: step.watch(f"{done:,} of {len(names):,} objects"))
        self._complete(parts, list(copied.values()))
        return {query: part.query for query, part in parts.items()}

    def _copied(self, query: str, name: str) -> SavedObject:
        content = self.checkpoint.of_query(query).content(name)
        if content is None:
            raise Gone(name)
        if name.startswith("offsets/") and self.of.generation is not None:
            content = with_one_more_source(content.decode(), self.of.generation.queries[query]).encode()
        saved = f"queries/{query}/{name}" if query else name
        bucket, _, folder = self.target.uri.removeprefix("s3a://").partition("/")
        self.s3.put_object(Bucket=bucket, Key=f"{folder}/{_DATA}/{saved}", Body=content)
        return SavedObject(name=saved, bytes=len(content), sha256=sha256(content))

    def _complete(self, parts: Mapping[str, Needed], objects: list[SavedObject]) -> None:
        # A query that is new in the app begins at the time of the preview, not where the others once began.
        generation = None if self.of.generation is None else self.of.generation.model_copy(update={"starts": {}})
        self.target.complete(
            Savepoint(
                name=self.target.name,
                job=self.of.job,
                environment=self.of.environment,
                made=datetime.now(UTC),
                checkpoint=self.checkpoint.uri,
                generation=generation,
                queries={query: part.query for query, part in parts.items()},
                data=_DATA,
                objects=tuple(sorted(objects, key=lambda one: one.name)),
            )
        )


def with_one_more_source(log: str, query: QueryRecord) -> str:
    """An offset log of the same query in a bounded run, which has a source of its own after all others (`heartbeat.once_at_start`).

    Args:
        log: content of ``offsets/N``.
        query: whose it is.
    """
    version, metadata, *offsets = log.split("\n")
    own = len(query.sources if query.reads is None else query.reads)
    return "\n".join([version, metadata, *offsets[:own], "-"])
