"""A bounded run: its input ends, everything closes, and its checkpoint is finished.

The ends are decided before the first query. When a micro-batch has read up to them, its record has the watermark at the end of time, and in
the next one all windows, joins and timers are due. If the sources include files, only Spark knows when they are read: the query ends,
and another one, whose sources read nothing more, does the same. ``docs/decisions/0035-bounded-runs.md`` gives the rationale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import ValidationError

from penstock.jobs.driver.errors import BoundedRunOver, EndUnreachable
from penstock.jobs.sources import files
from penstock.jobs.sources.ends import InputEnds
from penstock.jobs.sources.opening import Offsets
from penstock.jobs.spec.job import JobSpec
from penstock.jobs.storage.checkpoint import FINISHED, WHOLE, BatchRecord, Checkpoint
from penstock.jobs.storage.errors import BucketUnreachable, CheckpointDamaged
from penstock.jobs.storage.s3 import shared_client
from penstock.jobs.stream.event_time.engine import Engine

_ENDS = "ends.json"


class BoundedRun:
    """The bounded run of a checkpoint.

    Args:
        spec: of the job.
        checkpoint: of the job.
        bucket: of file sources that name none.

    Raises:
        BoundedRunOver: JOB-022, it has finished.
        BucketUnreachable: JOB-009.
    """

    def __init__(self, spec: JobSpec, checkpoint: Checkpoint, bucket: str) -> None:
        self._spec = spec
        self._checkpoint = checkpoint
        self._bucket = bucket
        self._ends: InputEnds | None = None
        # The queries of this driver that have ended because there was nothing more to read.
        self.read_out: set[str] = set()
        if checkpoint.get(FINISHED) is not None:
            _refuse(checkpoint.uri, "a bounded run that has finished")

    @property
    def ends(self) -> InputEnds:
        """Where the sources end, once `begin` has decided it."""
        assert self._ends is not None, "begin() comes first"
        return self._ends

    def begin(self, latest: Mapping[str, Offsets]) -> None:
        """Decides where the sources end, unless that has been done for this checkpoint.

        Args:
            latest: source -> topic -> partition -> offset after the last record now; Kafka sources only.

        Raises:
            EndUnreachable: JOB-023, the sources or their topics are not those of the decision.
            CheckpointDamaged: JOB-008.
            BucketUnreachable: JOB-009.
        """
        if self._ends is None:
            self._ends = self._stored() or self._decided(latest)
        self._refuse_lost(self._ends, latest)

    def within(self, starts: Mapping[str, Offsets]) -> dict[str, dict[str, dict[int, int]]]:
        """The start offsets of the partitions that existed when the ends were decided; none is after the end.

        Args:
            starts: source -> topic -> partition -> start offset of a query without a checkpoint.
        """
        return {
            name: {topic: {number: min(starts[name][topic][number], end) for number, end in ends.items()} for topic, ends in topics.items()}
            for name, topics in self.ends.topics.items()
        }

    def read(self, query: str, last: BatchRecord) -> bool:
        """Whether a query has read all input.

        Args:
            query: its name among those of the job.
            last: the record of its last committed micro-batch.
        """
        return query in self.read_out or last.watermarks.at_end

    def finish(self) -> None:
        """Notes that the run has finished, once all queries have closed everything: the checkpoint can't be used again.

        Raises:
            BucketUnreachable: JOB-009.
        """
        self._checkpoint.put_once(FINISHED, "")

    def _stored(self) -> InputEnds | None:
        text = self._checkpoint.get(_ENDS)
        try:
            return None if text is None else InputEnds.model_validate_json(text)
        except ValidationError as error:
            path, given = f"{self._checkpoint.uri}/penstock/{_ENDS}", error.errors()[0]["msg"]
            raise CheckpointDamaged(path=path, given=given, need="the ends of the sources, as written by the job", fix=WHOLE) from error

    def _decided(self, latest: Mapping[str, Offsets]) -> InputEnds:
        topics = {name: {topic: dict(ends) for topic, ends in of.items()} for name, of in latest.items()}
        ends = InputEnds(topics=topics, files={name: self._files(name) for name in self._spec.file_sources})
        if self._checkpoint.put_once(_ENDS, ends.model_dump_json()):
            return ends
        # Another driver has taken over the lease meanwhile.
        stored = self._stored()
        assert stored is not None
        return stored

    def _files(self, name: str) -> list[str]:
        source = self._spec.file_sources[name]
        try:
            return files.existing(shared_client(), source, self._bucket)
        except (ClientError, BotoCoreError) as error:
            path, fix = f"s3a://{source.bucket or self._bucket}/{source.path}", "check the bucket's name and the job's permissions"
            raise BucketUnreachable(path=path, given=str(error), need="a bucket that can be listed", fix=fix) from error

    def _refuse_lost(self, ends: InputEnds, latest: Mapping[str, Offsets]) -> None:
        decided, named = {*ends.topics, *ends.files}, set(self._spec.sources)
        if decided != named:
            self._unreachable("spec.sources", ", ".join(sorted(named)), f"the sources that it began with: {', '.join(sorted(decided))}")
        for source, topics in ends.topics.items():
            for topic, partitions in topics.items():
                for number, end in partitions.items():
                    now = latest[source].get(topic, {}).get(number)
                    if now is None or now < end:
                        given = "no such partition" if now is None else f"the last offset is {now}"
                        self._unreachable(f"topic {topic}, partition {number}", given, f"the records before offset {end}, where it ends")

    def _unreachable(self, path: str, given: str, need: str) -> NoReturn:
        fix = "restore it, or give the job a new metadata.name to start over with the input that exists now"
        raise EndUnreachable(path=path, given=given, need=f"{need}; decided in {self._checkpoint.uri}/penstock/{_ENDS}", fix=fix)


@dataclass(frozen=True)
class BoundedQuery:
    """A query of a bounded run.

    Args:
        run: of the job.
        name: of the query, among those of the job.
        files: whether it reads files.
    """

    run: BoundedRun
    name: str
    files: bool

    def read(self, last: BatchRecord) -> bool:
        """Whether all input has been read, so that the query only closes what is open.

        Args:
            last: the record of its last committed micro-batch.
        """
        return self.run.read(self.name, last)

    def ends_in_a_micro_batch(self, last: BatchRecord) -> bool:
        """Whether the micro-batch with which the input ends is known in that micro-batch, not only after the query."""
        return self.read(last) or not self.files

    def reached(self, engine: Engine) -> bool:
        """Whether the running micro-batch has read up to the ends."""
        return self.name in self.run.read_out or (not self.files and _passed(engine.ends(), self.run.ends.by_topic()))

    def goes_on(self, last: BatchRecord) -> bool:
        """Called when the query has ended because there was nothing more to do.

        Returns:
            Whether another one must close what is open; otherwise everything has been closed.
        """
        self.run.read_out.add(self.name)
        return not last.watermarks.at_end


def refuse_after_the_end(last: BatchRecord, checkpoint: Checkpoint) -> None:
    """Rejects a job without `bounded` on the checkpoint of a bounded run whose input has ended.

    Raises:
        BoundedRunOver: JOB-022.
    """
    if last.watermarks.at_end:
        _refuse(checkpoint.uri, "a bounded run whose input has ended; all new rows would be late")


def _refuse(checkpoint: str, given: str) -> NoReturn:
    fix = "give the job a new metadata.name; to process what has arrived since in each run, use trigger: availableNow without bounded"
    raise BoundedRunOver(path=checkpoint, given=given, need="an empty checkpoint, or one whose job goes on", fix=fix)


def _passed(read: Sequence[Offsets], ends: Offsets) -> bool:
    """Whether each of the sources has read up to the ends of its topics."""
    return all(
        partitions.get(number, 0) >= end
        for topics in read
        for topic, partitions in topics.items()
        for number, end in ends.get(topic, {}).items()
    )
