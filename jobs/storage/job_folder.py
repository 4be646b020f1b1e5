"""The folder of a job in the bucket of the checkpoints: its generations and their checkpoints, and which of them a driver goes on with.

A driver without a new generation finds out here which checkpoint it continues, so nobody who deploys a job has to know.
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import count

from pydantic import ValidationError

from penstock.jobs.spec.job import UpgradeMode
from penstock.jobs.storage.checkpoint import RETAINED_BATCHES, Checkpoint
from penstock.jobs.storage.continuation import Continuation, InitialSavepoint, SavepointStart
from penstock.jobs.storage.errors import CheckpointDamaged, CheckpointMissing, ConcurrentWriter
from penstock.jobs.storage.generation import ORIGIN, Fingerprint, Generation, Origin, RecordedSpec, Rewound
from penstock.jobs.storage.objects import Objects
from penstock.jobs.storage.rewind_request import RewindRequest, StartPoint

_FOLDER, _CHECKPOINTS = "generations/", "checkpoints/"


class JobFolder(Objects):
    """The folder of a job in the bucket of the checkpoints.

    Args:
        uri: ``s3a://bucket/folder``.
    """

    def checkpoint(self, number: int, token: int = 0, retained: int = RETAINED_BATCHES) -> Checkpoint:
        """A checkpoint of the job.

        Args:
            number: from 1.
            token: fencing token of the driver.
            retained: micro-batches after which its records expire.
        """
        return Checkpoint(f"{self.uri}/{_CHECKPOINTS}{number}", token, retained, self._given)

    def checkpoints(self) -> list[int]:
        """Numbers of the checkpoints that exist, ascending.

        Raises:
            BucketUnreachable: JOB-009.
        """
        return sorted(int(name) for name in self._folders(_CHECKPOINTS) if re.fullmatch(r"[0-9]+", name))

    def generations(self) -> list[int]:
        """Numbers of the generations that have begun, ascending.

        Raises:
            BucketUnreachable: JOB-009.
        """
        return sorted(int(match[1]) for name in self.names(_FOLDER) if (match := re.fullmatch(r"([0-9]+)\.json", name)))

    def generation(self, number: int) -> Generation:
        """A generation that has begun.

        Raises:
            CheckpointDamaged: JOB-008, its record can't be read.
            BucketUnreachable: JOB-009.
        """
        try:
            return Generation.model_validate_json(self.get(_name(number)) or "")
        except (ValidationError, UnicodeDecodeError) as error:
            raise CheckpointDamaged(
                path=f"{self.uri}/penstock/{_name(number)}",
                given=error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error),
                need=f"the record of generation {number}, as a driver of this or an earlier release wrote it",
                fix="restore the object from its versions; a newer release of Penstock may have written it: then deploy that one",
            ) from error

    def current(self) -> Generation | None:
        """The newest generation; None if none has begun.

        Raises:
            CheckpointDamaged: JOB-008.
            BucketUnreachable: JOB-009.
        """
        numbers = self.generations()
        return self.generation(numbers[-1]) if numbers else None

    def before(self, generation: Generation) -> Generation | None:
        """The generation before one; None if it is the first, or if the record of that one can't be read.

        Raises:
            BucketUnreachable: JOB-009.
        """
        with suppress(CheckpointDamaged):
            return None if generation.parent is None else self.generation(generation.parent.generation)
        return None

    def last_of(self, checkpoint: int) -> Generation | None:
        """The newest generation that has gone on with a checkpoint, by its number; None if none has.

        Raises:
            CheckpointDamaged: JOB-008.
            BucketUnreachable: JOB-009.
        """
        return next((one for one in map(self.generation, reversed(self.generations())) if one.checkpoint == checkpoint), None)

    def continuation(
        self,
        fingerprint: Fingerprint,
        mode: UpgradeMode,
        rewind_to: int | None = None,
        request: RewindRequest | None = None,
        initial: InitialSavepoint | None = None,
    ) -> Continuation:
        """Decides what a driver goes on with. Nothing is written.

        Args:
            fingerprint: what the driver runs.
            mode: the spec's ``upgradeMode``.
            rewind_to: the spec's ``rewindTo``, in epoch milliseconds.
            request: an operator's last one, obeyed or not.
            initial: the spec's savepoint.

        Raises:
            CheckpointMissing: JOB-086, the checkpoint to go on with is gone.
            CheckpointDamaged: JOB-008.
            BucketUnreachable: JOB-009.
        """
        current = self.current()
        if current is None:
            return self._first(rewind_to, initial.start if initial else None)
        by_spec = rewind_to if rewind_to != current.rewound_to else None
        if request is not None and request.after == current.number and by_spec in (None, request.spec_rewind_to):
            return self._requested(current, request)
        if initial is not None and initial.counts(current):
            return self.from_savepoint(current, initial.start)
        if by_spec is not None:
            return self._rewound(current, by_spec)
        rolled_back_to = None if current.fingerprint == fingerprint else self._rolled_back_to(current, fingerprint)
        if rolled_back_to is not None:
            return self._back(current, rolled_back_to.number)
        if current.fingerprint != fingerprint and mode == "stateless":
            return Continuation(current.number + 1, self._next_checkpoint(current), current, begins=True)
        self.refuse_missing(current)
        if current.fingerprint == fingerprint:
            return Continuation(
                current.number,
                current.checkpoint,
                current,
                begins=False,
                rewind=current.rewind,
                savepoint=current.savepoint,
                starts=current.starts,
            )
        number = current.number + 1
        return Continuation(number, current.checkpoint, current, begins=True, rewind=current.rewind, savepoint=current.savepoint)

    def _requested(self, current: Generation, request: RewindRequest) -> Continuation:
        if request.to is not None:
            return self._rewound(current, request.to)
        if request.start_from is None:
            return self._back(current, request.back_to or 0)
        consent, allowed = request.of_another_job, request.allow_non_restored_state
        start = SavepointStart(request.start_from, offsets=request.offsets, of_another_job=consent, allow_non_restored_state=allowed)
        return self.from_savepoint(current, start)

    def _back(self, current: Generation, number: int) -> Continuation:
        """To the checkpoint of an earlier generation, as that has left it."""
        back = self.generation(number)
        self.refuse_missing(back)
        begun = current.number + 1
        return Continuation(begun, back.checkpoint, current, begins=True, rewind=back.rewind, savepoint=back.savepoint, starts=back.starts)

    def _rolled_back_to(self, current: Generation, fingerprint: Fingerprint) -> Generation | None:
        """The generation before, if a driver is that again, and its checkpoint was left for an empty one that has no micro-batch yet."""
        before = self.before(current)
        if before is None or before.fingerprint != fingerprint or before.checkpoint == current.checkpoint:
            return None
        left_for = self.checkpoint(current.checkpoint)
        try:
            committed = any(left_for.of_query(name).last_record().batch >= 0 for name in current.queries or [""])
        except CheckpointDamaged:
            # Whatever the job goes on with, this is no way to it.
            return None
        return None if committed else before

    def _rewound(self, current: Generation, to: StartPoint) -> Continuation:
        rewind = Rewound(to=to, left=current.number)
        return Continuation(current.number + 1, self._next_checkpoint(current), current, begins=True, rewinds_to=to, rewind=rewind)

    def from_savepoint(self, current: Generation, start: SavepointStart) -> Continuation:
        """The generation after one, which begins with a savepoint.

        Raises:
            PenstockError: JOB-008, JOB-009.
        """
        number = self._next_checkpoint(current, start)
        rewind = Rewound(left=current.number, offsets=start.offsets)
        return Continuation(current.number + 1, number, current, begins=True, rewind=rewind, savepoint=start.uri, start=start)

    def _first(self, rewind_to: int | None, start: SavepointStart | None) -> Continuation:
        """The first generation, also of a job that an earlier release has run: its checkpoint is continued, unless the spec asks for
        another start.
        """
        if start is not None:
            return Continuation(1, self._free(1, 1, start), None, begins=True, savepoint=start.uri, start=start)
        if rewind_to is None:
            # Not one that a driver has begun to fill with a savepoint.
            number = next(number for number in count(1) if self.checkpoint(number).get(ORIGIN) is None)
            return Continuation(1, number, None, begins=True)
        number = max(self.checkpoints(), default=0) + 1
        return Continuation(1, number, None, begins=True, rewinds_to=rewind_to, rewind=Rewound(to=rewind_to))

    def _next_checkpoint(self, current: Generation, start: SavepointStart | None = None) -> int:
        """One that no generation has had: a first generation that was rewound may have the second one."""
        return self._free(max(current.number, current.checkpoint) + 1, current.number + 1, start)

    def _free(self, number: int, generation: int, start: SavepointStart | None) -> int:
        """The first checkpoint from a number on that is empty, or has been filled for the same start by a driver that failed then."""
        origin = None if start is None else Origin(savepoint=start.uri, generation=generation, offsets=start.offsets)
        while not self._is_free(number, origin):
            number += 1
        return number

    def _is_free(self, number: int, origin: Origin | None) -> bool:
        checkpoint = self.checkpoint(number)
        text = checkpoint.get(ORIGIN)
        if text is not None:
            return origin is not None and text == origin.text
        return checkpoint.content("metadata") is None

    def begin(self, generation: Generation) -> None:
        """Records a generation, before its queries start.

        Raises:
            ConcurrentWriter: JOB-083, another driver has begun one with this number.
            ConditionalWriteFailed: JOB-082.
            BucketUnreachable: JOB-009.
        """
        if not self.put_once(_name(generation.number), generation.model_dump_json(by_alias=True, indent=1)):
            raise ConcurrentWriter(
                path=f"{self.uri}/penstock/{_name(generation.number)}",
                given="written by another driver",
                need="no other driver: this one holds the job's lease",
                fix="stop the other driver, which does not take the lease",
            )

    def record_spec(self, number: int, spec: RecordedSpec) -> None:
        """Records what the spec of a generation is, unless that is recorded: it is for people, and no driver reads it.

        Raises:
            ConditionalWriteFailed: JOB-082.
            BucketUnreachable: JOB-009.
        """
        self.put_once(_spec_name(number), spec.model_dump_json(by_alias=True))

    def recorded_spec(self, number: int) -> RecordedSpec | None:
        """The spec of a generation; None of one of an earlier release.

        Raises:
            CheckpointDamaged: JOB-008, it can't be read.
            BucketUnreachable: JOB-009.
        """
        try:
            text = self.get(_spec_name(number))
            return None if text is None else RecordedSpec.model_validate_json(text)
        except (ValidationError, UnicodeDecodeError) as error:
            path, fix = f"{self.uri}/penstock/{_spec_name(number)}", "restore it from its versions, or delete it: no driver needs it"
            raise CheckpointDamaged(
                path=path, given=str(error).splitlines()[0], need=f"the spec of generation {number}", fix=fix
            ) from error

    def refuse_missing(self, current: Generation) -> None:
        """Raises if the checkpoint of a generation is gone.

        Raises:
            CheckpointMissing: JOB-086.
            BucketUnreachable: JOB-009.
        """
        checkpoint = self.checkpoint(current.checkpoint)
        # A driver creates it before it records the generation, and nothing deletes it.
        if checkpoint.get("identity") is None:
            raise CheckpointMissing(
                path=checkpoint.uri,
                given="no penstock/identity",
                need=f"the checkpoint of generation {current.number}, which has begun",
                fix="restore the folder from object versions; to start without it, set upgradeMode: stateless and another restartNonce",
            )


def _name(number: int) -> str:
    return f"{_FOLDER}{number}.json"


def _spec_name(number: int) -> str:
    return f"{_FOLDER}{number}.spec.json"
