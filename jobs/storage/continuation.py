"""What a driver goes on with: a checkpoint, an empty one, or a savepoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.jobs.spec.initial_offsets import InitialOffsets
from penstock.jobs.spec.job import JobSpec
from penstock.jobs.storage.generation import Generation, Rewound
from penstock.jobs.storage.rewind_request import StartPoint


@dataclass(frozen=True)
class SavepointStart:
    """A savepoint that a generation begins with.

    Args:
        uri: of the savepoint, ``s3a://bucket/folder``.
        by_spec: whether the spec's ``initialSavepointPath`` is it.
        offsets: where the topics are read on at, instead of at its offsets; None: at those.
        of_another_job: whether it may be another job's.
        allow_non_restored_state: whether it may have queries that the app does not have.
    """

    uri: str
    by_spec: bool = False
    offsets: InitialOffsets | None = None
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
        start = SavepointStart(
            spec.initial_savepoint_path,
            by_spec=True,
            offsets=spec.initial_offsets,
            of_another_job=True,
            allow_non_restored_state=spec.allow_non_restored_state,
        )
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
