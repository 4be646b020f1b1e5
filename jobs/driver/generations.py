"""The generation that a driver runs: decided once it holds the job's lease, and recorded before its queries start."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.driver import rewind
from penstock.jobs.driver.checkpoint_changes import checkpoint_changes
from penstock.jobs.driver.fingerprint import fingerprint
from penstock.jobs.driver.fixed_parallelism import fixed_parallelism
from penstock.jobs.driver.initial_offsets import changed
from penstock.jobs.driver.left_files import left_files
from penstock.jobs.driver.micro_batch import Emit
from penstock.jobs.driver.planning import QueryPlan
from penstock.jobs.driver.repartitionable_state import refuse_unsupported
from penstock.jobs.driver.repartitioning import repartition
from penstock.jobs.savepoints.before_upgrade import UpgradeSavepoint, is_due
from penstock.jobs.savepoints.folder import SavepointFolder, Savepoints
from penstock.jobs.savepoints.manifest import Savepoint
from penstock.jobs.savepoints.other_offsets import of_these_sources
from penstock.jobs.savepoints.starting import Filling, mark_repartitioning, refuse_another_job, refuse_lost_queries
from penstock.jobs.savepoints.taking import Taken
from penstock.jobs.spec import SpecFile
from penstock.jobs.spec.checkpoint_settings import retained_batches, retention_conf
from penstock.jobs.storage.checkpoint import OUTLIVED_BATCHES, Checkpoint
from penstock.jobs.storage.continuation import Continuation, InitialSavepoint, SavepointStart
from penstock.jobs.storage.errors import BucketUnreachable, CheckpointDamaged, ConditionalWriteFailed
from penstock.jobs.storage.generation import Fingerprint, Generation, Parent, RecordedSpec, Versions
from penstock.jobs.storage.job_folder import JobFolder
from penstock.jobs.storage.lease import Lease, LeaseFile, StoredLease
from penstock.jobs.storage.lease_holder import LeaseHolder
from penstock.jobs.storage.query_record import QueryRecord
from penstock.jobs.storage.rewind_request import RewindRequestFile, StartPoint
from penstock.jobs.storage.stored_state import StoredState
from penstock.sizing.errors import raise_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DISTRIBUTION = "penstock-kit"


class Generations:
    """The generations of a job, for its driver.

    Args:
        configuration: what the driver was started with.
        spec: the job's.
        emit: reports an event.
        kafka: how the brokers are reached; called if they are asked.

    Raises:
        BucketUnreachable: JOB-009, the job's folder is none.
    """

    def __init__(self, configuration: RuntimeConfiguration, spec: SpecFile, emit: Emit, kafka: Callable[[], KafkaAccess]) -> None:
        self._configuration = configuration
        self._spec = spec
        self._emit = emit
        self._kafka = kafka
        self._folder = JobFolder(configuration.job_folder)
        self._decided: Continuation | None = None
        self._savepoint: Savepoint | None = None

    @property
    def first(self) -> Checkpoint:
        """The job's first checkpoint."""
        return self._folder.checkpoint(1)

    def lease(self, holder: LeaseHolder, stop: threading.Event) -> Lease | None:
        """Takes the job's lease, which all of its generations have in common; None if the job is stopped while it waits for it.

        Raises:
            PenstockError: JOB-008, JOB-009, JOB-080, JOB-082.
        """
        earlier = LeaseFile(self.first.uri, holder, self._configuration.lease_s)
        file = LeaseFile(self._folder.uri, holder, self._configuration.lease_s)
        lease = file.take(lambda: self._first_token(earlier.read()), stop, self._waiting)
        if lease is not None and not self._folder.generations():
            self._wait_for(earlier, lease, stop)
        return lease

    def _wait_for(self, earlier: LeaseFile, lease: Lease, stop: threading.Event) -> None:
        """Waits for a driver of a release without generations, which holds the lease of its checkpoint: it may finish a micro-batch."""
        try:
            if earlier.read() is not None:
                taken = earlier.take(lambda: lease.token, stop, self._waiting)
                if taken is not None:
                    taken.release()
        except BaseException:
            lease.release()
            raise

    def decide(self, lease: Lease) -> Checkpoint:
        """Decides which checkpoint the driver goes on with. Nothing is written, except a new checkpoint that begins with a savepoint.

        Args:
            lease: that it holds.

        Raises:
            PenstockError: JOB-008, JOB-009, JOB-081, JOB-082, JOB-086, JOB-093, JOB-095 to JOB-098, those of an app that is not
                found, and JOB-001, JOB-002, JOB-010 and JOB-101 of a savepoint whose topics are read on at other offsets.
        """
        spec = self._spec.job.spec
        request = RewindRequestFile(self._folder.uri).read()
        decided = self._folder.continuation(self.fingerprint, spec.upgrade_mode, spec.rewind_to, request, self._initial)
        self._decided = decided
        if decided.rewinds_to is not None:
            rewind.refuse_what_has_no_past(spec, decided.rewinds_to)
        checkpoint = self._folder.checkpoint(decided.checkpoint, lease.token, self._retained)
        self._emit("generation", {"number": decided.number, "checkpoint": checkpoint.uri, **self._described(decided)})
        if decided.start is not None:
            self._decided = self._filled(checkpoint, decided, decided.start)
        return checkpoint

    def _filled(self, checkpoint: Checkpoint, decided: Continuation, start: SavepointStart) -> Continuation:
        """Fills a new checkpoint with a savepoint, before anything else of the job is touched."""
        folder = SavepointFolder(start.uri)
        taken = savepoint = folder.manifest()
        refuse_another_job(savepoint, folder.uri, self._spec.job.metadata.name, start)
        batches = {query: saved.batch for query, saved in savepoint.queries.items()}
        self._emit("restoring", {"savepoint": folder.uri, "objects": len(savepoint.objects), "bytes": savepoint.bytes, "batches": batches})
        filling = Filling(checkpoint, folder, savepoint, decided.number)
        if (asked := start.offsets) is not None:
            filling = replace(filling, offsets=asked, changes=lambda: changed(asked, folder, taken, self._spec, self._kafka()))
            savepoint = of_these_sources(taken, self._spec.job.spec.sources)
        self._savepoint = savepoint
        filling.fill()
        return replace(decided, starts=savepoint.generation.starts) if savepoint.generation else decided

    @property
    def rewinds_to(self) -> StartPoint | None:
        """Where a generation that begins with a rewind starts to read its topics; None for any other."""
        return self._decided.rewinds_to if self._decided is not None and self._decided.begins else None

    @property
    def starts(self) -> Mapping[str, Mapping[str, Mapping[int, int]]]:
        """Source -> topic -> partition -> start offset of a checkpoint that goes on, as it was decided when that began."""
        return {} if self._decided is None else self._decided.starts

    def begin(self, plans: Sequence[QueryPlan], spark: str, token: int) -> None:
        """Records the generation, unless it has begun already, and leaves the checkpoint of the one before it; or first takes a savepoint
        of that checkpoint, if the generation goes on with it and the spec says so.

        Args:
            plans: of its queries.
            spark: Spark's version.
            token: of the lease that this driver holds.

        Raises:
            PenstockError: JOB-009, JOB-082, JOB-083, JOB-094, JOB-099, JOB-105, JOB-108.
        """
        decided = self._decided
        assert decided is not None, "decide() comes first"
        if not decided.begins:
            # A driver that crashed in between has left the record without it, as an earlier release has.
            self._record_spec(decided.number)
            return
        self._refuse(decided, plans)
        if is_due(self._spec.job.spec.upgrade_mode, decided) and any(plan.batches.last.batch >= 0 for plan in plans):
            self._saved(decided)
        generation = Generation(
            number=decided.number,
            checkpoint=decided.checkpoint,
            parent=self._parent(decided, token),
            mode=self._spec.job.spec.upgrade_mode,
            began=datetime.now(UTC),
            rewound_to=self._spec.job.spec.rewind_to,
            rewind=decided.rewind,
            savepoint=decided.savepoint,
            initial_savepoint=self._obeyed(decided),
            restart_nonce=self._spec.job.spec.restart_nonce,
            fingerprint=self.fingerprint,
            versions=Versions(penstock=_penstock(), spark=spark),
            starts=_starts(plans),
            queries={plan.share.query: plan.record for plan in plans},
        )
        self._folder.begin(generation)
        self._record_spec(generation.number)
        self._decided = Continuation(decided.number, decided.checkpoint, generation, begins=False, starts=generation.starts)

    def repartitioned(self, plans: Sequence[QueryPlan], session: SparkSession, token: int) -> Checkpoint | None:
        """Repartitions the state, if the generation begins with a savepoint and the spec has another parallelism than that. With
        ``upgradeMode: savepoint`` it begins with the savepoint before the upgrade then, instead of the checkpoint.

        Args:
            plans: of its queries.
            session: with the settings of the job.
            token: of the lease that this driver holds.

        Returns:
            The checkpoint that it goes on with, for which the queries are to be planned anew; None if nothing is repartitioned.

        Raises:
            PenstockError: JOB-008, JOB-009, JOB-081, JOB-082, JOB-094, JOB-096, JOB-099, JOB-105, JOB-108, JOB-109.
        """
        decided, due = self._decided, [(plan, plan.fixed) for plan in plans if plan.fixed is not None]
        assert decided is not None, "decide() comes first"
        if not due or (decided.start is None and not self._is_between_batches(decided)):
            return None
        self._refuse(decided, plans)
        before = self._folder.checkpoint(decided.checkpoint)
        for plan, fixed in due:
            query = before.of_query(plan.share.query)
            refuse_unsupported(query.uri, StoredState.of(query), fixed.asked)
        if decided.start is None:
            decided = self._begun_with_a_savepoint(decided, token)
            self._refuse(decided, plans)
        checkpoint = self._folder.checkpoint(decided.checkpoint, token, self._retained)
        mark_repartitioning(checkpoint)
        for plan, fixed in due:
            plan.emit("repartitioning", {"checkpoint": checkpoint.uri, "shufflePartitions": {"from": fixed.checkpoint, "to": fixed.asked}})
            repartition(session, checkpoint.of_query(plan.share.query), fixed)
        return checkpoint

    def may_repartition(self, session: SparkSession) -> bool:
        """Whether the generation begins with a savepoint, or may, and the spec has another parallelism than that.

        Args:
            session: with the settings of the job.

        Raises:
            BucketUnreachable: JOB-009.
        """
        decided, spec = self._decided, self._spec.job.spec
        assert decided is not None, "decide() comes first"
        begins_with_one = decided.start is not None or (is_due(spec.upgrade_mode, decided) and not spec.bounded)
        checkpoint = self._folder.checkpoint(decided.checkpoint)
        names = ["", *checkpoint.queries()] if begins_with_one else []
        return any(fixed_parallelism(session, checkpoint.of_query(name)) is not None for name in names)

    def _is_between_batches(self, decided: Continuation) -> bool:
        """Whether nothing of a micro-batch is written that is not committed. A job whose driver died within one finishes that: another
        checkpoint would write its rows again.
        """
        checkpoint = self._folder.checkpoint(decided.checkpoint)
        return all(checkpoint.of_query(name).is_between_batches() for name in ["", *checkpoint.queries()])

    def _begun_with_a_savepoint(self, decided: Continuation, token: int) -> Continuation:
        """Takes the savepoint before the upgrade, and fills a new checkpoint with it."""
        saved, current = self._saved(decided), decided.before
        assert saved is not None and current is not None, "there is a micro-batch, of a generation before this one"
        allowed = self._spec.job.spec.allow_non_restored_state
        start = SavepointStart(f"{self._folder.uri}/savepoints/{saved.name}", allow_non_restored_state=allowed)
        moved = self._folder.from_savepoint(current, start)
        self._decided = self._filled(self._folder.checkpoint(moved.checkpoint, token, self._retained), moved, start)
        return self._decided

    def _refuse(self, decided: Continuation, plans: Sequence[QueryPlan]) -> None:
        """Rejects queries that can't go on with what the generation begins with."""
        if decided.start is not None and self._savepoint is not None:
            refuse_lost_queries(self._savepoint, decided.start, [plan.share.query for plan in plans])
        if self._spec.job.spec.checkpoint.state_schema == "same":
            self._refuse_another(decided, {plan.share.query: plan.record for plan in plans if plan.batches.last.batch >= 0})

    def changed_since(self, plans: Sequence[QueryPlan]) -> bool:
        """Whether the job has changed since its last micro-batch: nothing shows yet that its generation does its work.

        Args:
            plans: of the queries of the generation, which has begun.

        Raises:
            BucketUnreachable: JOB-009.
        """
        current = self._decided.before if self._decided is not None else None
        before = self._folder.before(current) if current is not None else None
        if current is None or current.parent is None or before is None or before.fingerprint == current.fingerprint:
            # With the same fingerprint somebody has asked for a rewind, and waits for it.
            return False
        known = current.parent.batches if before.checkpoint == current.checkpoint else {}
        return all(plan.batches.last.batch <= known.get(plan.share.query, -1) for plan in plans)

    def _refuse_another(self, decided: Continuation, begun: Mapping[str, QueryRecord]) -> None:
        """Rejects queries that can't go on with a checkpoint, or would leave rows of it behind."""
        before = self._kept_by(decided) if begun else None
        refuse_another_checkpoint(before, begun)
        if before is not None:
            raise_all(left_files(self._folder.checkpoint(decided.checkpoint), before.queries, begun))

    def _saved(self, decided: Continuation) -> Savepoint | None:
        """Takes a savepoint of the checkpoint that the job goes on with, as the generation before has left it."""
        job = self._spec.job.metadata.name
        # A driver does not know the environment's name.
        of = Taken(job=job, environment="", by=f"the driver of generation {decided.number}", generation=decided.before)
        checkpoint = self._folder.checkpoint(decided.checkpoint)
        return UpgradeSavepoint(checkpoint, Savepoints(self._folder.uri), of, self._emit).taken()

    def _kept_by(self, decided: Continuation) -> Generation | None:
        """The generation whose state the checkpoint has; None if no record of it is known."""
        return self._savepoint.generation if self._savepoint is not None else self._folder.last_of(decided.checkpoint)

    @property
    def _initial(self) -> InitialSavepoint | None:
        """The spec's savepoint. A local run, whose result is checked, reads its recorded input from the beginning."""
        return None if self._configuration.close_when_idle else InitialSavepoint.of(self._spec.job.spec)

    def _obeyed(self, decided: Continuation) -> str | None:
        """The last ``initialSavepointPath`` that the job has started from."""
        if decided.start is not None and decided.start.by_spec:
            return decided.start.uri
        return decided.before.initial_savepoint if decided.before is not None else None

    def _parent(self, decided: Continuation, token: int) -> Parent | None:
        if decided.before is None:
            return None
        before = self._folder.checkpoint(decided.before.checkpoint, token)
        return Parent(generation=decided.before.number, batches=_left(before) if decided.anew else _last_batches(before))

    @property
    def _retained(self) -> int:
        """Micro-batches after which records of Penstock expire: later than Spark's, of which each needs its record."""
        conf = {**retention_conf(self._spec.job.spec), **self._configuration.spark_conf}
        return retained_batches(conf) + OUTLIVED_BATCHES

    def _record_spec(self, number: int) -> None:
        """Records the spec of a generation, for people: a job runs without it too."""
        try:
            self._folder.record_spec(number, RecordedSpec(text=self._spec.document.text))
        except (BucketUnreachable, ConditionalWriteFailed) as error:
            print(f"WARN the spec of generation {number} is not recorded: {error}", file=sys.stderr)

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """What this driver runs.

        Raises:
            PenstockError: those of an app that is not found.
        """
        return fingerprint(self._spec, self._configuration)

    def _first_token(self, earlier: StoredLease | None) -> int:
        """Of a lease that does not exist: greater than all that the job's drivers have had, also those that have written no record."""
        recorded = [self._folder.checkpoint(number).greatest_token() for number in self._folder.checkpoints()]
        return max([0, *recorded, earlier.record.token if earlier else 0]) + 1

    def _waiting(self, lease: Mapping[str, object]) -> None:
        self._emit("waiting", lease)

    def _described(self, decided: Continuation) -> dict[str, object]:
        if not decided.begins or decided.before is None:
            return {}
        return {"after": decided.before.number, "changed": self.fingerprint.differences(decided.before.fingerprint)}


def refuse_another_checkpoint(before: Generation | None, queries: Mapping[str, QueryRecord]) -> None:
    """Rejects queries whose offsets or state a checkpoint does not have.

    Args:
        before: the generation whose checkpoint it is, or whose savepoint it is filled with; None: not known.
        queries: those that go on with it and have committed micro-batches.

    Raises:
        PenstockError: JOB-094, JOB-105.
    """
    if before is not None:
        raise_all(checkpoint_changes(before.queries, queries))


def _left(checkpoint: Checkpoint) -> dict[str, int]:
    """The last micro-batches of a checkpoint that the job leaves; empty for a damaged one, from which this is the way out."""
    try:
        batches = _last_batches(checkpoint)
        checkpoint.fence()
    except CheckpointDamaged as error:
        print(f"WARN the checkpoint that the job leaves is damaged: {error}", file=sys.stderr)
        return {}
    return batches


def _last_batches(checkpoint: Checkpoint) -> dict[str, int]:
    return {name: checkpoint.of_query(name).last_record().batch for name in ["", *checkpoint.queries()]}


def _penstock() -> str | None:
    try:
        return version(_DISTRIBUTION)
    except PackageNotFoundError:
        return None


def _starts(plans: Sequence[QueryPlan]) -> dict[str, dict[str, dict[int, int]]]:
    """Where the queries start that have no micro-batch yet."""
    new = {source for plan in plans if plan.batches.last.batch < 0 for source in plan.share.sources}
    offsets = plans[0].job.offsets
    return {source: {topic: dict(parts) for topic, parts in offsets[source].items()} for source in sorted(new & offsets.keys())}
