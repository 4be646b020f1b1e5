"""Where a savepoint is on S3."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from pydantic import ValidationError

from penstock.jobs.savepoints.errors import SavepointDamaged, SavepointMissing, SavepointOfNewerRelease
from penstock.jobs.savepoints.manifest import FORMAT, NAME_PATTERN, Savepoint
from penstock.jobs.storage.objects import Folder, Objects
from penstock.jobs.storage.offset_log import fixed_settings
from penstock.jobs.storage.stored_state import StoredState

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_MANIFEST = "manifest.json"
_DAMAGED = "take another savepoint, or restore the object from its versions"


class SavepointFolder(Folder):
    """The folder of a savepoint.

    Args:
        uri: ``s3a://bucket/job/savepoints/name``.
    """

    @property
    def name(self) -> str:
        """Of the savepoint."""
        return self.uri.rpartition("/")[2]

    def manifest(self) -> Savepoint:
        """What the savepoint has.

        Raises:
            SavepointMissing: JOB-095, there is none.
            SavepointDamaged: JOB-096, the manifest can't be read.
            SavepointOfNewerRelease: JOB-097.
            BucketUnreachable: JOB-009.
        """
        content = self.content(_MANIFEST)
        if content is None:
            need, fix = f"its {_MANIFEST}, which is written last", "penstock savepoint list shows those that are complete"
            raise SavepointMissing(path=self.uri, given="none", need=need, fix=fix)
        try:
            document = json.loads(content)
            version = document.get("formatVersion") if isinstance(document, dict) else None
            if isinstance(version, int) and version > FORMAT:
                need = f"a format of at most {FORMAT}, that of this release"
                raise SavepointOfNewerRelease(path=self.uri, given=f"format {version}", need=need, fix="use the release that made it")
            return Savepoint.model_validate(document)
        except ValueError as error:
            given = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
            raise SavepointDamaged(
                path=f"{self.uri}/{_MANIFEST}", given=given, need="the manifest as it was written", fix=_DAMAGED
            ) from error

    def begun(self) -> bool:
        """Whether it has a manifest."""
        return self.content(_MANIFEST) is not None

    def complete(self, savepoint: Savepoint) -> bool:
        """Writes the manifest; False if another one has been written meanwhile.

        Raises:
            ConditionalWriteFailed: JOB-082.
            BucketUnreachable: JOB-009.
        """
        return self.put_once(_MANIFEST, savepoint.model_dump_json(by_alias=True, indent=1))

    def data(self, savepoint: Savepoint) -> Objects:
        """The folder of its objects."""
        return Objects(f"{self.uri}/{savepoint.data}", self._given)

    def state(self, savepoint: Savepoint, query: str) -> StoredState:
        """The state of a query.

        Raises:
            BucketUnreachable: JOB-009.
        """
        prefix = f"queries/{query}/" if query else ""
        data = self.data(savepoint)
        log = data.content(f"{prefix}offsets/{savepoint.queries[query].batch}") or b""
        names = [one.name.removeprefix(prefix) for one in savepoint.objects if one.name.startswith(prefix)]
        return StoredState(fixed_settings(log.decode(errors="replace")), lambda: names, lambda name: data.content(f"{prefix}{name}"))

    def verify(self, savepoint: Savepoint) -> None:
        """Checks that all objects are there, with their sizes: a request for each thousand.

        Raises:
            SavepointDamaged: JOB-096, one is not.
            BucketUnreachable: JOB-009.
        """
        listed = self.data(savepoint).listed()
        missing = [one for one in savepoint.objects if one.name not in listed]
        for one in missing[:1]:
            given = f"none{f', and {len(missing) - 1} further ones are missing' if len(missing) > 1 else ''}"
            raise self.damaged(savepoint, one.name, given, f"an object of {one.bytes:,} bytes")
        for one in savepoint.objects:
            if listed[one.name].bytes != one.bytes:
                raise self.damaged(savepoint, one.name, f"{listed[one.name].bytes:,} bytes", f"{one.bytes:,} bytes")

    def damaged(self, savepoint: Savepoint, name: str, given: str, need: str) -> SavepointDamaged:
        """The error of an object that is not as the manifest has it."""
        return SavepointDamaged(path=f"{self.uri}/{savepoint.data}/{name}", given=given, need=need, fix=_DAMAGED)

    def delete_attempts(self, *, keep: str | None = None) -> int:
        """Deletes the objects of attempts, the manifest first, unless one is kept.

        Args:
            keep: folder of objects that stay, with the manifest; None: everything goes.

        Returns:
            How many objects are deleted.

        Raises:
            BucketUnreachable: JOB-009.
        """
        names = [name for name in self.listed() if keep is None or not (name == _MANIFEST or name.startswith(f"{keep}/"))]
        # Without its manifest it is no savepoint from the first request on.
        if _MANIFEST in names:
            self.delete(_MANIFEST)
        self.delete_all([name for name in names if name != _MANIFEST])
        return len(names)


class Savepoints(Objects):
    """The savepoints of a job: ``savepoints/`` in its folder.

    Args:
        job_folder: ``s3a://bucket/job``.
        s3: client; by default a job's own.
    """

    def __init__(self, job_folder: str, s3: S3Client | None = None) -> None:
        super().__init__(f"{job_folder}/savepoints", s3)

    def names(self, folder: str = "") -> list[str]:
        """Names of the folders, sorted; also those of savepoints that are incomplete."""
        return self._folders(folder)

    def of(self, name: str) -> SavepointFolder:
        """The folder of a savepoint, which need not exist."""
        return SavepointFolder(f"{self.uri}/{name}", self._given)

    @staticmethod
    def valid(name: str) -> bool:
        """Whether a savepoint may have this name."""
        return re.fullmatch(NAME_PATTERN, name) is not None
