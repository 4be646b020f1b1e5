"""The records in a job's folder on S3 that a rewind reads and writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from penstock.jobs.spec.initial_offsets import InitialOffsets
from penstock.jobs.storage.checkpoint import BatchRecord
from penstock.jobs.storage.driver_runs import DriverRunsFile
from penstock.jobs.storage.generation import Generation, Rewound
from penstock.jobs.storage.job_folder import JobFolder
from penstock.jobs.storage.rewind_request import RewindRequest, RewindRequestFile, StartPoint
from penstock.scripts.provisioning.errors import NothingToRewind


@dataclass(frozen=True)
class JobRecords:
    """The records in a job's folder that a rewind reads and writes.

    Args:
        folder: with its generations.
        requests: of rewinds.
        runs: of its drivers.
    """

    folder: JobFolder
    requests: RewindRequestFile
    runs: DriverRunsFile

    def newest(self, job: str) -> Generation:
        """The job's newest generation.

        Raises:
            NothingToRewind: DEP-019, none has begun.
            PenstockError: JOB-008, JOB-009.
        """
        current = self.folder.current()
        if current is None:
            need = "a job that a driver has run: its first driver reads as the spec says"
            raise NothingToRewind(path=f"job {job}", given="no generation", need=need, fix="set startingOffsets, or rewindTo, in the spec")
        return current

    def pending(self, newest: Generation) -> RewindRequest | None:
        """The request that the next driver obeys.

        Raises:
            PenstockError: JOB-008, JOB-009.
        """
        request = self.requests.read()
        return request if request is not None and request.after == newest.number else None

    def begun(self, newest: Generation, to: StartPoint) -> RewindRequest | None:
        """The request that the newest generation has obeyed, if it went there and has not come to a micro-batch yet.

        Raises:
            PenstockError: JOB-008, JOB-009.
        """
        request = self.requests.read()
        if request is None or request.to != to or newest.number != request.after + 1:
            return None
        if newest.rewind != Rewound(to=to, left=request.after):
            return None
        return None if any(last.batch >= 0 for _, last in self.last_micro_batches(newest)) else request

    def started(
        self, newest: Generation, uri: str, batches: Mapping[str, int], offsets: InitialOffsets | None = None
    ) -> RewindRequest | None:
        """The request that the newest generation has obeyed, if it started from this savepoint and has not come to a micro-batch yet.

        Args:
            newest: the generation.
            uri: of the savepoint.
            batches: query -> its last micro-batch in the savepoint.
            offsets: where its topics are read on at, instead of at the savepoint's offsets.

        Raises:
            PenstockError: JOB-008, JOB-009.
        """
        request = self.requests.read()
        if (
            request is None
            or (request.start_from, request.offsets) != (uri, offsets)
            or newest.rewind != Rewound(left=request.after, offsets=request.offsets)
        ):
            return None
        if newest.savepoint != uri or newest.number != request.after + 1:
            return None
        gone_on = any(last.batch != batches.get(name, -1) for name, last in self.last_micro_batches(newest))
        return None if gone_on else request

    def before_the_rewind(self, job: str, newest: Generation) -> Generation:
        """The generation whose checkpoint an undo continues, which is whole.

        Raises:
            NothingToRewind: DEP-019, the job has not been rewound since.
            CheckpointMissing: JOB-086.
            CheckpointDamaged: JOB-008.
            BucketUnreachable: JOB-009.
        """
        if newest.rewind is None or newest.rewind.left is None:
            given = f"checkpoint {newest.checkpoint}, which has begun without one"
            raise NothingToRewind(path=f"job {job}", given=given, need="a checkpoint that has begun with a rewind", fix="nothing to undo")
        back = self.folder.generation(newest.rewind.left)
        self.folder.refuse_missing(back)
        for _ in self.last_micro_batches(back):
            pass
        return back

    def last_micro_batches(self, generation: Generation) -> Iterator[tuple[str, BatchRecord]]:
        """Query and the record of its last micro-batch in the checkpoint of a generation; the first query's name is empty.

        Raises:
            CheckpointDamaged: JOB-008.
            BucketUnreachable: JOB-009.
        """
        checkpoint = self.folder.checkpoint(generation.checkpoint)
        for name in ["", *checkpoint.queries()]:
            yield name, checkpoint.of_query(name).last_record()
