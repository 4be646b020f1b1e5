"""A savepoint is taken of a checkpoint while its job may run: copied by S3, compared, and completed by its manifest.

Spark and the job delete what they need no more while it is copied. The listing decides which micro-batch the savepoint is of; if an object
of it is gone before it is copied, everything is taken again as of a later micro-batch. Each attempt has a folder of its own, so that
neither an interruption nor another command at the same time mixes two.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING
from zipfile import BadZipFile

from pydantic import ValidationError

from penstock.jobs.savepoints.content import Needed, TooEarly, needed
from penstock.jobs.savepoints.copying import LARGEST_BYTES, Copier, each
from penstock.jobs.savepoints.errors import CheckpointMoves, NothingToSave, SavepointNameTaken, StateExpired
from penstock.jobs.savepoints.folder import SavepointFolder
from penstock.jobs.savepoints.manifest import SavedObject, SavedQuery, Savepoint
from penstock.jobs.savepoints.state import StateIncomplete
from penstock.jobs.storage.checkpoint import WHOLE, Checkpoint
from penstock.jobs.storage.errors import CheckpointDamaged
from penstock.jobs.storage.generation import Generation
from penstock.jobs.storage.objects import Listed

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_ATTEMPTS = 5
# A driver publishes files within seconds after it has decided on them.
_PAUSE_S = 1.0


@dataclass(frozen=True)
class Taken:
    """Whose checkpoint a savepoint is taken of.

    Args:
        job: its name.
        environment: of the job; empty if that is not known.
        by: who takes it; for people only.
        generation: that runs on the checkpoint; None if the job has recorded none.
        until: of each query's micro-batches that were planned up to then the last one; None: the last one of all.
    """

    job: str
    environment: str
    by: str | None
    generation: Generation | None
    until: datetime | None = None


class Gone(Exception):
    """An object that was listed does not exist any more."""


def take(
    checkpoint: Checkpoint,
    folder: SavepointFolder,
    of: Taken,
    s3: S3Client,
    said: Callable[[str], object] = lambda _: None,
    pause_s: float = _PAUSE_S,
) -> Savepoint:
    """Takes a savepoint.

    Args:
        checkpoint: of the job.
        folder: of the savepoint.
        of: whose checkpoint it is.
        s3: client with access to both.
        said: called with how far it is.
        pause_s: before it is taken again, in seconds.

    Raises:
        SavepointNameTaken: DEP-030.
        NothingToSave: DEP-031.
        CheckpointMoves: DEP-032.
        StateExpired: DEP-034.
        PenstockError: JOB-008, JOB-009, JOB-082.
    """
    if folder.begun():
        raise _taken(folder)
    data = f"data-{uuid.uuid4().hex[:8]}"
    for attempt in range(_ATTEMPTS):
        try:
            saved = _attempt(checkpoint, folder, f"{data}-{attempt}", of, s3, said, last=attempt == _ATTEMPTS - 1)
            break
        except (StateIncomplete, Gone) as error:
            why = str(error)
            said(f"taken again: {why}")
            time.sleep(pause_s)
    else:
        fix = "run it again; penstock inspect shows what the checkpoint has"
        need = f"what a start from its last micro-batch needs, in {_ATTEMPTS} attempts"
        raise CheckpointMoves(path=checkpoint.uri, given=f"no {why}", need=need, fix=fix)
    if not folder.complete(saved):
        raise _taken(folder)
    folder.delete_attempts(keep=saved.data)
    return saved


def _attempt(
    checkpoint: Checkpoint, folder: SavepointFolder, data: str, of: Taken, s3: S3Client, said: Callable[[str], object], *, last: bool
) -> Savepoint:
    listed = checkpoint.listed()
    parts = parts_of(checkpoint, listed, of)
    pending = [f"mark that the files of sink {sink} are published" for part in parts.values() for sink in part.pending]
    if pending and not last:
        # A job that has ended there stays so: whoever starts from it publishes them.
        raise StateIncomplete(pending[0])
    own = Copier(s3, checkpoint.uri, f"{folder.uri}/{data}")
    names = [f"{_prefix(query)}{name}" for query, part in parts.items() for name in part.names]
    refused = [name for name in names if listed[name].bytes > LARGEST_BYTES]
    if refused:
        need = f"objects of at most {LARGEST_BYTES:,} bytes, which S3 copies at once"
        raise CheckpointMoves(path=f"{checkpoint.uri}/{refused[0]}", given=f"{listed[refused[0]].bytes:,} bytes", need=need, fix="none")
    copied = each(partial(_copied, own), names, lambda done: said(f"{done:,} of {len(names):,} objects"))
    written = {f"{_prefix(query)}{name}": content for query, part in parts.items() for name, content in part.written.items()}
    sums = {**copied, **{name: own.put(name, content) for name, content in written.items()}}
    return _compared(
        folder,
        Savepoint(
            name=folder.name,
            job=of.job,
            environment=of.environment,
            made=datetime.now(UTC),
            by=of.by,
            checkpoint=checkpoint.uri,
            generation=of.generation,
            queries={query: part.query for query, part in parts.items()},
            data=data,
            objects=tuple(SavedObject(name=name, bytes=_size(name, listed, written), sha256=sums[name]) for name in sorted(sums)),
        ),
    )


def _compared(folder: SavepointFolder, saved: Savepoint) -> Savepoint:
    """What was copied is what was listed: nothing has been replaced, or deleted, meanwhile."""
    found = folder.data(saved).listed()
    for one in saved.objects:
        if one.name not in found or found[one.name].bytes != one.bytes:
            raise Gone(one.name)
    return saved


def queries_of(checkpoint: Checkpoint, of: Taken) -> dict[str, SavedQuery]:
    """The queries of a savepoint that would be taken now. Nothing is written.

    Raises:
        PenstockError: DEP-031, DEP-032, DEP-034, JOB-008, JOB-009.
    """
    try:
        return {query: part.query for query, part in parts_of(checkpoint, checkpoint.listed(), of).items()}
    except (StateIncomplete, Gone) as error:
        need = "what a start from its last micro-batch needs"
        raise CheckpointMoves(path=checkpoint.uri, given=f"no {error}", need=need, fix="run it again") from error


def parts_of(checkpoint: Checkpoint, listed: Mapping[str, Listed], of: Taken) -> dict[str, Needed]:
    """Query -> what a start needs of it. Nothing is written.

    Args:
        checkpoint: of the job.
        listed: its objects.
        of: whose checkpoint it is.

    Raises:
        StateIncomplete: something is missing, or expires meanwhile.
        Gone: an object has been deleted since it was listed.
        PenstockError: DEP-031, DEP-034, JOB-008, JOB-009.
    """
    parts = dict(_each_part(checkpoint, listed, of))
    if not parts:
        need = "a job that has committed a micro-batch"
        raise NothingToSave(path=checkpoint.uri, given="no commits", need=need, fix="wait for the first one: penstock status")
    return parts


def _each_part(checkpoint: Checkpoint, listed: Mapping[str, Listed], of: Taken) -> Iterator[tuple[str, Needed]]:
    by_query: dict[str, set[str]] = {"": set()}
    for name in listed:
        match = re.match(r"queries/([^/]+)/", name)
        by_query.setdefault(match[1] if match else "", set()).add(name[match.end() :] if match else name)
    # One that the app has no more has left its checkpoint behind.
    known = of.generation.queries.keys() if of.generation and of.generation.queries else by_query.keys()
    for query in sorted(by_query.keys() & known):
        part = _needed(checkpoint.of_query(query), frozenset(by_query[query]), of.until)
        if part is not None:
            yield query, part


def _needed(checkpoint: Checkpoint, names: frozenset[str], until: datetime | None) -> Needed | None:
    def read(name: str) -> bytes:
        content = checkpoint.content(name)
        if content is None:
            raise Gone(name)
        return content

    try:
        return needed(names, read, until)
    except TooEarly as error:
        need = f"a time from {_instant(error.earliest)} on" if error.earliest else "a checkpoint that keeps a whole micro-batch"
        fix = "a later time; or, without the state, penstock rewind without --with-state"
        raise StateExpired(path=checkpoint.uri, given=_instant(until), need=need, fix=fix) from error
    except (ValueError, KeyError, BadZipFile) as error:
        given = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise CheckpointDamaged(path=checkpoint.uri, given=given, need="logs, records and state as they were written", fix=WHOLE) from error


def _copied(copier: Copier, name: str) -> str:
    checksum = copier.copy(name)
    if checksum is None:
        raise Gone(name)
    return checksum


def _size(name: str, listed: Mapping[str, Listed], written: Mapping[str, bytes]) -> int:
    return len(written[name]) if name in written else listed[name].bytes


def _instant(time: datetime | None) -> str:
    return time.isoformat(timespec="milliseconds") if time is not None else ""


def _prefix(query: str) -> str:
    return f"queries/{query}/" if query else ""


def _taken(folder: SavepointFolder) -> SavepointNameTaken:
    fix = "choose another --name, or delete it: penstock savepoint delete"
    return SavepointNameTaken(path=folder.uri, given=f"--name {folder.name}", need="a name that no savepoint of the job has", fix=fix)
