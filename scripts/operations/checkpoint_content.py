"""What a job's checkpoint has, as far as it concerns its operation: frozen models, in sizes of bytes and counts of objects."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from penstock.jobs.storage.checkpoint import BatchRecord
from penstock.jobs.storage.objects import Listed
from penstock.jobs.storage.state_files import StateSchema
from penstock.sizing.errors import PenstockError


class _Said(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, validate_by_name=True, arbitrary_types_allowed=True)


class Amount(_Said):
    """Of objects.

    Args:
        objects: their number.
        bytes: their sizes together.
    """

    objects: int = 0
    bytes: int = 0

    @classmethod
    def of(cls, listed: Mapping[str, Listed]) -> Amount:
        """Of a listing."""
        return cls(objects=len(listed), bytes=sum(one.bytes for one in listed.values()))


class SourcePartition(_Said):
    """A partition that a micro-batch has read.

    Args:
        topic: of the partition.
        partition: its number.
        start: the first offset; None if the log of the micro-batch before has expired or does not have the partition.
        end: the offset after the last one.
    """

    topic: str
    partition: int
    start: int | None
    end: int


class SourceOffsets(_Said):
    """A source of a query in the offset log.

    Args:
        names: of the spec's sources that read these topics; empty of a source other than Kafka.
        partitions: of Kafka.
        offset: as the connector writes it, of any other source; None without one.
    """

    names: tuple[str, ...]
    partitions: tuple[SourcePartition, ...]
    offset: str | None


class StateStore(_Said):
    """A store of a stateful operator.

    Args:
        name: ``default``, unless the operator has several.
        partitions: of its state.
        version: that the micro-batch has left in each of them.
        oldest_version: that each of them still has.
        schemas: its columns, by column family.
    """

    name: str
    partitions: int
    version: int
    oldest_version: int | None
    schemas: tuple[StateSchema, ...]


class StatefulOperator(_Said):
    """A stateful operator.

    Args:
        id: Spark's.
        name: Spark's, such as ``stateStoreSave``.
        stores: its state.
        amount: of its files, of all versions.
    """

    id: int
    name: str
    stores: tuple[StateStore, ...]
    amount: Amount


class SinkFile(_Said):
    """A file of a file sink.

    Args:
        key: of the object in the bucket of the output; of a file that is still open its directory.
        rows: in the file.
        bytes: its size.
    """

    key: str
    rows: int
    bytes: int


class FileSink(_Said):
    """The last decision of a file sink.

    Args:
        name: of the sink.
        decision: its number.
        micro_batch: after which it was made.
        pending: files whose publication is not recorded yet.
        published: files that are published.
        open: files that later micro-batches add to.
    """

    name: str
    decision: int
    micro_batch: int
    pending: tuple[SinkFile, ...]
    published: tuple[SinkFile, ...]
    open: tuple[SinkFile, ...]


class QueryContent(_Said):
    """A query's part of the checkpoint, as of a micro-batch.

    Args:
        name: empty for the first.
        micro_batch: which; -1 if none is committed.
        at: its own timestamp.
        committed: when its commit was written; None if it is not committed.
        first_kept: the oldest micro-batch that can be shown.
        last_committed: the newest committed micro-batch; -1 without one.
        last_planned: the newest one in the offset log; -1 without one.
        sources: in the order of the query's plan.
        record: Penstock's.
        operators: stateful ones.
        sinks: those that write files.
        amounts: of its objects, by the first part of their names.
    """

    name: str
    micro_batch: int
    at: datetime | None
    committed: datetime | None
    first_kept: int
    last_committed: int
    last_planned: int
    sources: tuple[SourceOffsets, ...]
    record: BatchRecord | None
    operators: tuple[StatefulOperator, ...]
    sinks: tuple[FileSink, ...]
    amounts: dict[str, Amount]


class CheckpointContent(_Said):
    """A checkpoint.

    Args:
        job: its name.
        generation: that the checkpoint was looked up for; None if the job has recorded none.
        checkpoint: where it is.
        identity: of the checkpoint; None if it has none.
        finished: whether a bounded run has ended.
        amount: of all its objects.
        queries: of the job.
        errors: what is damaged or missing, as ``-o json`` prints errors.
        faults: the same, as errors.
    """

    job: str
    generation: int | None
    checkpoint: str
    identity: str | None
    finished: bool
    amount: Amount
    queries: tuple[QueryContent, ...]
    errors: tuple[dict[str, Any], ...]
    faults: tuple[PenstockError, ...] = Field(default=(), exclude=True)
