"""The record of a generation of a job: what it runs, which checkpoint it has, and how that began.

A generation begins when a driver starts with another app, spec, plan or image than the one before it. Its record,
``penstock/generations/<number>.json`` in the job's folder on S3, is created once and never replaced; the greatest number is the generation
that runs. The records are small and stay: they are the job's history.
"""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from penstock.jobs.spec.initial_offsets import InitialOffsets
from penstock.jobs.spec.job import UpgradeMode
from penstock.jobs.storage.query_record import QueryRecord
from penstock.jobs.storage.rewind_request import StartPoint

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
        offsets: where the topics are read on at, instead of at the savepoint's offsets.
    """

    savepoint: str
    generation: int
    offsets: InitialOffsets | None = None

    @property
    def text(self) -> str:
        """The object's content."""
        return self.model_dump_json(by_alias=True, exclude_none=True)


class Rewound(_Record):
    """The rewind, or the start from a savepoint, with which a checkpoint has begun.

    Args:
        to: where its topics are read from, a time in epoch milliseconds; None of a savepoint, which says from where.
        left: number of the generation before the rewind, to which an undo goes back; None for none.
        offsets: where the topics are read on at, instead of at the savepoint's offsets.
    """

    to: StartPoint | None = None
    left: int | None = Field(default=None, ge=1)
    offsets: InitialOffsets | None = None


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
