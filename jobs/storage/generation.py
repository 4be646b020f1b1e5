"""The generations of a job: what it has run as, one after another, and which checkpoint each of them goes on with.

A generation begins when a driver starts with another app, spec, plan or image than the one before it. Its record,
``penstock/generations/<number>.json`` in the job's folder on S3, is created once and never replaced; the greatest number is the generation
that runs. The records are small and stay: they are the job's history. A driver without a new generation finds out here which checkpoint
it continues, so nobody who deploys a job has to know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from penstock.jobs.errors import CheckpointDamaged, CheckpointMissing, ConcurrentWriter
from penstock.jobs.spec.job import JobSpec, UpgradeMode
from penstock.jobs.spec.sources import FromFiles, FromKafka, FromSocket, Source
from penstock.jobs.state_schema import StateSchema
from penstock.jobs.storage.checkpoint import RETAINED_BATCHES, Checkpoint
from penstock.jobs.storage.objects import Objects
from penstock.jobs.storage.rewind_request import RewindRequest, StartPoint

_FOLDER, _CHECKPOINTS = "generations/", "checkpoints/"
# In the checkpoint.
ORIGIN = "origin.json"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, validate_by_name=True)


class Fingerprint(_Record):
    """What a generation runs; two are the same generation if these are equal.

    Args:
        app: hash of the source of the app and of the modules that it imports from its folders.
        spec: hash of the spec without ``upgradeMode`` and ``local``.
        plan: hash of the plan, by whatever deployed the job.
        image: of the driver's container; None outside of one.
    """

    app: str
    spec: str
    plan: str
    image: str | None = None

    def differences(self, other: Fingerprint) -> list[str]:
        """The fields that differ, for people."""
        return [name for name in type(self).model_fields if getattr(self, name) != getattr(other, name)]


class Versions(_Record):
    """Of what runs the generation.

    Args:
        penstock: of this package; None where it is not installed, but run from a checkout.
        spark: of Spark.
    """

    penstock: str | None
    spark: str


class Parent(_Record):
    """The generation before this one.

    Args:
        generation: its number.
        batches: query -> its last committed micro-batch when this generation began, -1 for none; the first query's name is empty.
    """

    generation: int = Field(ge=1)
    batches: dict[str, int] = Field(default_factory=dict)


class Origin(_Record):
    """What a checkpoint is being filled with, written before anything else of it.

    Args:
        savepoint: ``s3a://bucket/folder``.
        generation: that it is filled for.
    """

    savepoint: str
    generation: int

    @property
    def text(self) -> str:
        """The object's content."""
        return self.model_dump_json(by_alias=True)


class Rewound(_Record):
    """The rewind, or the start from a savepoint, with which a checkpoint has begun.

    Args:
        to: where its topics are read from, a time in epoch milliseconds; None of a savepoint, which says from where.
        left: number of the generation before the rewind, to which an undo goes back; None for none.
    """

    to: StartPoint | None = None
    left: int | None = Field(default=None, ge=1)


class Operator(_Record):
    """A stateful operator of a query.

    Args:
        id: Spark's, by which the checkpoint's ``state/`` has its state.
        name: of its class in Spark, such as ``Aggregate``.
        state: what it keeps; None where that is not known, as in records of earlier releases.
    """

    id: int = Field(ge=0)
    name: str
    state: StateSchema | None = None


class SourceRecord(_Record):
    """A source of a query, as the spec has it.

    Args:
        name: in the spec.
        kind: what ``places`` are.
        places: what it reads: the topics, the regular expression of their names, the folder on S3 or the connection.
    """

    name: str
    kind: Literal["topics", "pattern", "files", "socket"]
    places: tuple[str, ...]

    @classmethod
    def of(cls, name: str, source: Source) -> SourceRecord:
        """Of a source of a spec.

        Args:
            name: in the spec.
            source: the source.
        """
        match source:
            case FromKafka(kafka=kafka):
                return cls(name=name, kind="topics" if kafka.pattern is None else "pattern", places=kafka.named or (kafka.pattern or "",))
            case FromFiles(files=files):
                return cls(name=name, kind="files", places=(f"{files.bucket or ''}/{files.path}",))
            case FromSocket(socket=socket):
                return cls(name=name, kind="socket", places=(socket.connection,))


class QueryRecord(_Record):
    """A query of a generation.

    Args:
        sources: names of the sources that it reads, in the spec's order.
        operators: those that keep state, in the order of their ids.
        reads: its sources in the order of Spark's plan, by which a checkpoint has their offsets; None in records of earlier releases.
    """

    sources: tuple[str, ...]
    operators: tuple[Operator, ...]
    reads: tuple[SourceRecord, ...] | None = None

    @classmethod
    def of(
        cls,
        sources: Sequence[str],
        operators: Sequence[str],
        states: Sequence[StateSchema] | None = None,
        reads: Sequence[SourceRecord] | None = None,
    ) -> QueryRecord:
        """Of a query.

        Args:
            sources: their names.
            operators: their names, in the order of Spark's ids, which it gives from 0.
            states: of the operators, in the same order; None: not known.
            reads: the sources, in the order of Spark's plan; None: not known.
        """
        known: Sequence[StateSchema | None] = states or [None] * len(operators)
        kept = (Operator(id=number, name=name, state=state) for number, (name, state) in enumerate(zip(operators, known, strict=True)))
        return cls(sources=tuple(sources), operators=tuple(kept), reads=None if reads is None else tuple(reads))


class Generation(_Record):
    """A generation's record.

    Args:
        number: from 1.
        checkpoint: number of its checkpoint, the folder ``checkpoints/<number>`` of the job.
        parent: the generation before it; None for the first.
        mode: how it continues its parent's: with the state, or without.
        began: when it began, by the driver's clock; for people only.
        rewound_to: the spec's ``rewindTo`` in epoch milliseconds, which is done.
        rewind: with which its checkpoint has begun, by the spec or by request; None if with none.
        savepoint: with which its checkpoint has begun, ``s3a://bucket/folder``; None if with none.
        initial_savepoint: the spec's last ``initialSavepointPath`` that has been started from.
        restart_nonce: the spec's ``restartNonce``.
        fingerprint: what it runs.
        versions: of what runs it.
        starts: source -> topic -> partition -> start offset, where the checkpoint is new; empty where it goes on.
        queries: name -> query; the first one's name is empty.
    """

    number: int = Field(ge=1)
    checkpoint: int = Field(ge=1)
    parent: Parent | None
    mode: UpgradeMode
    began: datetime
    rewound_to: int | None = Field(default=None, ge=0)
    rewind: Rewound | None = None
    savepoint: str | None = None
    initial_savepoint: str | None = None
    restart_nonce: int | None = None
    fingerprint: Fingerprint
    versions: Versions
    starts: dict[str, dict[str, dict[int, int]]] = Field(default_factory=dict)
    queries: dict[str, QueryRecord] = Field(default_factory=dict)


class RecordedSpec(_Record):
    """The spec of a generation, beside its record: ``penstock/generations/<number>.spec.json``.

    Args:
        text: of the spec file.
    """

    text: str


@dataclass(frozen=True)
class SavepointStart:
    """A savepoint that a generation begins with.

    Args:
        uri: of the savepoint, ``s3a://bucket/folder``.
        by_spec: whether the spec's ``initialSavepointPath`` is it.
        of_another_job: whether it may be another job's.
        allow_non_restored_state: whether it may have queries that the app does not have.
    """

    uri: str
    by_spec: bool = False
    of_another_job: bool = False
    allow_non_restored_state: bool = False


@dataclass(frozen=True)
class InitialSavepoint:
    """The savepoint that a spec names.

    Args:
        start: ``initialSavepointPath``, with what goes with it.
        restart_nonce: ``restartNonce``.
    """

    start: SavepointStart
    restart_nonce: int | None = None

    @classmethod
    def of(cls, spec: JobSpec) -> InitialSavepoint | None:
        """Of a spec; None if it names none."""
        if spec.initial_savepoint_path is None:
            return None
        # The path in the spec says whose savepoint it is.
        allowed = spec.allow_non_restored_state
        start = SavepointStart(spec.initial_savepoint_path, by_spec=True, of_another_job=True, allow_non_restored_state=allowed)
        return cls(start, spec.restart_nonce)

    def counts(self, current: Generation | None) -> bool:
        """Whether the generation after this one starts from it: it is the first one, or both the path and the nonce are new."""
        if current is None:
            return True
        return self.start.uri != current.initial_savepoint and self.restart_nonce != current.restart_nonce


@dataclass(frozen=True)
class Continuation:
    """What a driver goes on with.

    Args:
        number: of the generation.
        checkpoint: number of its checkpoint.
        before: the newest generation that has begun; None if none has.
        begins: whether the generation is to be recorded before its queries start.
        rewinds_to: where it begins to read its topics; None: as the sources say, or as the checkpoint does.
        rewind: with which the checkpoint has begun, or begins.
        savepoint: with which the checkpoint has begun, or begins.
        start: from that savepoint, if the checkpoint is to be filled with it.
        starts: source -> topic -> partition -> start offset as recorded of the checkpoint, for queries without a micro-batch.
    """

    number: int
    checkpoint: int
    before: Generation | None
    begins: bool
    rewinds_to: StartPoint | None = None
    rewind: Rewound | None = None
    savepoint: str | None = None
    start: SavepointStart | None = None
    starts: Mapping[str, Mapping[str, Mapping[int, int]]] = field(default_factory=dict)

    @property
    def anew(self) -> bool:
        """Whether the checkpoint is another one than that of the generation before."""
        return self.before is not None and self.before.checkpoint != self.checkpoint


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
            return self._from_savepoint(current, initial.start)
        if by_spec is not None:
            return self._rewound(current, by_spec)
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
        start = SavepointStart(request.start_from, of_another_job=consent, allow_non_restored_state=allowed)
        return self._from_savepoint(current, start)

    def _back(self, current: Generation, number: int) -> Continuation:
        """To the checkpoint of an earlier generation, as that has left it."""
        back = self.generation(number)
        self.refuse_missing(back)
        begun = current.number + 1
        return Continuation(begun, back.checkpoint, current, begins=True, rewind=back.rewind, savepoint=back.savepoint, starts=back.starts)

    def _rewound(self, current: Generation, to: StartPoint) -> Continuation:
        rewind = Rewound(to=to, left=current.number)
        return Continuation(current.number + 1, self._next_checkpoint(current), current, begins=True, rewinds_to=to, rewind=rewind)

    def _from_savepoint(self, current: Generation, start: SavepointStart) -> Continuation:
        number = self._next_checkpoint(current, start)
        rewind = Rewound(left=current.number)
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
        origin = None if start is None else Origin(savepoint=start.uri, generation=generation)
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
