"""A savepoint of another job, or in another bucket, is copied to the job that is to start from it.

A job may read its own folder alone, and whoever operates it may read more: so the command copies, and the driver finds the savepoint among
those of its own job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.jobs.savepoints.copying import Copier, each
from penstock.jobs.savepoints.errors import SavepointNameTaken
from penstock.jobs.savepoints.folder import SavepointFolder, Savepoints
from penstock.jobs.savepoints.manifest import SavedObject, Savepoint
from penstock.scripts.progress import Step

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def own_copy(saved: Savepoint, source: SavepointFolder, savepoints: Savepoints) -> SavepointFolder:
    """Where a job has a savepoint that it is to start from: its own, or a copy with the name of the savepoint after that of its job.

    Args:
        saved: the savepoint.
        source: where it is.
        savepoints: of the job.
    """
    own = source.uri.startswith(f"{savepoints.uri}/")
    return source if own else savepoints.of(f"{saved.job}-{saved.name}")


def imported(saved: Savepoint, source: SavepointFolder, savepoints: Savepoints, s3: S3Client, step: Step) -> SavepointFolder:
    """Copies a savepoint, unless that is done already.

    Args:
        saved: the savepoint.
        source: where it is.
        savepoints: of the job that is to start from it.
        s3: client with access to both.
        step: shows how far it is.

    Returns:
        `own_copy`, with all objects.

    Raises:
        SavepointNameTaken: DEP-030, the job has another savepoint of that name.
        PenstockError: JOB-009, JOB-082, JOB-096.
    """
    target = own_copy(saved, source, savepoints)
    if target is source:
        return source
    copy = saved.model_copy(update={"name": target.name})
    if not target.begun():
        copier = Copier(s3, source.data(saved).uri, target.data(copy).uri)
        each(
            lambda one: _copied(copier, one, source, saved),
            saved.objects,
            lambda done: step.watch(f"{done:,} of {len(saved.objects):,} objects"),
        )
        target.complete(copy)
    if target.manifest() != copy:
        fix = f"penstock savepoint delete ENV --job JOB {target.name}, if nobody needs it"
        raise SavepointNameTaken(path=target.uri, given="another savepoint", need=f"the name free for a copy of {source.uri}", fix=fix)
    return target


def _copied(copier: Copier, one: SavedObject, source: SavepointFolder, saved: Savepoint) -> None:
    checksum = copier.copy(one.name)
    if checksum != one.sha256:
        raise source.damaged(saved, one.name, "none" if checksum is None else f"SHA-256 {checksum}", f"SHA-256 {one.sha256}")
