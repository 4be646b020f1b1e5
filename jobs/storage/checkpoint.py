"""Penstock's own objects in a job's checkpoint: the record of each micro-batch and the manifests of its sinks.

They lie below ``penstock/`` in the checkpoint directory on S3, beside Spark's own files, so that copying a checkpoint copies them too.
"""

from __future__ import annotations

import contextlib
import re
import uuid
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from penstock.jobs.storage.errors import CheckpointDamaged, LeaseLost
from penstock.jobs.storage.objects import Objects
from penstock.jobs.storage.offset_log import FixedSettings, fixed_settings
from penstock.jobs.watermark import END_MS, Watermarks

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# Source: Spark 4.3.0, spark.sql.streaming.minBatchesToRetain: it keeps at least this many micro-batches; 100 by default. Ours outlive them.
OUTLIVED_BATCHES = 100
RETAINED_BATCHES = 100 + OUTLIVED_BATCHES
# Exists in the checkpoint of a bounded run that has closed everything.
FINISHED = "finished"
# Folder of the checkpoints of a job's further queries.
_QUERIES = "queries/"
WHOLE = (
    "restore it all, penstock/ included, from a copy or object versions; "
    "or start with an empty one: upgradeMode: stateless and another restartNonce"
)


class Position(NamedTuple):
    """How far a partition has been read.

    Args:
        next: the next offset to read.
        latest: the offset after the last record when the micro-batch was planned; None of a replayed one, which is not planned again.
    """

    next: int
    latest: int | None


class BatchRecord(BaseModel):
    """What one micro-batch did, written before Spark commits it; a replay writes the same again.

    Args:
        batch: Spark's batch id.
        token: fencing token of the driver that wrote it; 0 in records without one.
        time_ms: the micro-batch's own timestamp in epoch milliseconds.
        began_with_ms: the watermark that its rows were compared with.
        watermarks: what the next micro-batch begins with.
        rows_in: source -> records read in this micro-batch.
        tags: tag -> rows in this micro-batch.
        tolerated: source -> rows in this micro-batch that were older than the watermark and still counted.
        total_rows_in: source -> records read since the checkpoint began.
        total_tags: tag -> rows since the checkpoint began.
        total_late: source -> late rows since the checkpoint began.
        total_tolerated: source -> rows since the checkpoint began that were older than the watermark and still counted.
        positions: topic -> partition -> where the micro-batch ended; empty in records without it, and of sources other than Kafka.
        state_bytes: size of the query's state after an earlier micro-batch, the last one that Spark had reported: of RocksDB's files, which
            are compressed and written every few micro-batches, or on the heap. None before the driver's second micro-batch, without state,
            and in records without it.
        format: greater in records of a later release that this one must not go on with.
    """

    # A field that is not known is one of a later release, which went on without it before: after a rollback its records are read.
    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel, validate_by_name=True)

    batch: int = Field(ge=-1)
    token: int = Field(default=0, ge=0)
    time_ms: int = 0
    # The field's name in checkpoints.
    began_with_ms: int | None = Field(default=None, alias="beganInForceMs")
    watermarks: Watermarks = Watermarks()
    rows_in: dict[str, int] = Field(default_factory=dict)
    tags: dict[str, int] = Field(default_factory=dict)
    tolerated: dict[str, int] = Field(default_factory=dict)
    total_rows_in: dict[str, int] = Field(default_factory=dict)
    total_tags: dict[str, int] = Field(default_factory=dict)
    total_late: dict[str, int] = Field(default_factory=dict)
    total_tolerated: dict[str, int] = Field(default_factory=dict)
    positions: dict[str, dict[int, Position]] = Field(default_factory=dict)
    state_bytes: int | None = Field(default=None, ge=0)
    format: Literal[1] = Field(default=1, exclude=True)

    @property
    def closed(self) -> bool:
        """Whether the micro-batch began after the end of a bounded input, so that everything was due in it."""
        return self.began_with_ms == END_MS


BEFORE_THE_FIRST = BatchRecord(batch=-1)


class Checkpoint(Objects):
    """A checkpoint directory on S3.

    Args:
        uri: ``s3a://bucket/folder``.
        token: fencing token of the driver, 0 or greater; a greater one's records are never replaced.
        retained: micro-batches after which a record or a sink's manifest expires.
        s3: client; by default a job's own.
    """

    def __init__(self, uri: str, token: int = 0, retained: int = RETAINED_BATCHES, s3: S3Client | None = None) -> None:
        super().__init__(uri, s3)
        self.token = token
        self.retained = retained

    def of_query(self, name: str) -> Checkpoint:
        """The checkpoint of a query of the job: this one for the first, for a further one that below it. They have one lease and one token.

        Args:
            name: of the query, among those of the job; empty for the first.
        """
        return Checkpoint(f"{self.uri}/{_QUERIES}{name}", self.token, self.retained, self._given) if name else self

    def queries(self) -> list[str]:
        """Names of the further queries that have a checkpoint, sorted."""
        return self._folders(_QUERIES)

    def identity(self) -> str:
        """The id of this checkpoint, 8 hexadecimal digits; created on first use.

        Raises:
            CheckpointDamaged: the object exists and is not an id.
        """
        self.put_once("identity", uuid.uuid4().hex[:8])
        identity = self.get("identity")
        if identity is None or not re.fullmatch(r"[0-9a-f]{8}", identity):
            path = f"{self.uri}/penstock/identity"
            raise CheckpointDamaged(path=path, given=repr(identity), need="eight hexadecimal digits, as written by the job", fix=WHOLE)
        return identity

    def last_record(self) -> BatchRecord:
        """The record of the last committed micro-batch; `BEFORE_THE_FIRST` for a checkpoint without one.

        Raises:
            CheckpointDamaged: a committed micro-batch has no readable record, or the other way round.
        """
        last = self._newest("commits/")
        if last is None:
            self._refuse_lost_commits()
            return BEFORE_THE_FIRST
        try:
            text = self.get(_record_name(last))
            if text is None:
                raise CheckpointDamaged(
                    path=self.uri, need=f"penstock/{_record_name(last)}, which must exist for commits/{last}", fix=WHOLE
                )
            return BatchRecord.model_validate_json(text)
        except (ValidationError, UnicodeDecodeError) as error:
            given = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
            path = f"{self.uri}/penstock/{_record_name(last)}"
            raise CheckpointDamaged(path=path, given=given, need=f"the record of micro-batch {last}", fix=WHOLE) from error

    def kept_record(self, batch: int) -> BatchRecord | None:
        """The record of a micro-batch; None if there is none that can be read.

        Raises:
            BucketUnreachable: JOB-009.
        """
        with contextlib.suppress(ValidationError, UnicodeDecodeError):
            text = self.get(_record_name(batch)) if batch >= 0 else None
            return BatchRecord.model_validate_json(text) if text is not None else None
        return None

    def _refuse_lost_commits(self) -> None:
        """Without commits Spark starts from the beginning. A record of micro-batch 0 may exist: its commit comes later."""
        numbers = self._recorded()
        if max(numbers, default=0) > 0:
            need = f"commits/{max(numbers) - 1}, which must exist before penstock/{_record_name(max(numbers))}"
            raise CheckpointDamaged(path=self.uri, given="no commits", need=need, fix=WHOLE)

    def fixed_settings(self) -> FixedSettings:
        """The settings of the query's first micro-batch, which Spark keeps to, by its newest offset log; what is wrong with that log is
        Spark's to say.

        Raises:
            BucketUnreachable: JOB-009.
        """
        newest = self._newest("offsets/")
        if newest is None:
            return FixedSettings()
        with contextlib.suppress(UnicodeDecodeError):
            stored = self._with_etag(f"{self._folder}/offsets/{newest}")
            return fixed_settings(stored[0]) if stored else FixedSettings()
        return FixedSettings()

    def is_between_batches(self) -> bool:
        """Whether the last micro-batch that Spark has planned is committed: nothing of another one is written.

        Raises:
            BucketUnreachable: JOB-009.
        """
        return self._newest("offsets/") == self._newest("commits/")

    def _newest(self, log: str) -> int | None:
        """The last micro-batch in one of Spark's logs; None if it is empty."""
        return max((int(name) for name in self._names(log) if re.fullmatch(r"[0-9]+", name)), default=None)

    def greatest_token(self) -> int:
        """The greatest token of the last records of all queries, whether committed or not; 0 without any. A lease that is created anew
        continues after it.
        """
        return max(self._last_token(), *(self.of_query(name)._last_token() for name in self.queries()), 0)

    def _last_token(self) -> int:
        numbers = self._recorded()
        text = self.get(_record_name(max(numbers))) if numbers else None
        return _token(text) if text else 0

    def record(self, record: BatchRecord) -> None:
        """Writes a micro-batch's record and deletes the one that has expired. A record of an earlier attempt, by this driver or one
        before it, is replaced.

        Raises:
            LeaseLost: JOB-081, the record is of a driver with a greater token.
            ConditionalWriteFailed: JOB-082.
            BucketUnreachable: JOB-009.
        """
        name = _record_name(record.batch)
        text = record.model_dump_json(by_alias=True)
        # A single request unless the micro-batch is a replay.
        while not self.put_once(name, text) and not self._replaced(name, text, record.token):
            pass
        # Of a driver that was frozen, too: none that came after it needs a record that is so much older.
        self.delete_expired(_record_name, record.batch - self.retained)

    def fence(self) -> None:
        """Leaves records with this driver's token where the next micro-batches' of all queries would be: a driver with a smaller one
        that still runs on this checkpoint commits nothing more. A driver that goes on with it later replaces them.

        Raises:
            LeaseLost: JOB-081, a driver with a greater token has been here.
            PenstockError: JOB-008, JOB-009, JOB-082.
        """
        for name in ["", *self.queries()]:
            query = self.of_query(name)
            last = query.last_record()
            query.record(last.model_copy(update={"batch": last.batch + 1, "token": self.token}))

    def _replaced(self, name: str, text: str, token: int) -> bool:
        """Replaces a record; False if it has changed or is gone by now."""
        stored = self._with_etag(self._key(name))
        if stored is None:
            return False
        existing, etag = stored
        if _token(existing) > token:
            raise LeaseLost(
                path=f"{self.uri}/penstock/{name}",
                given=f"written by a driver with token {_token(existing)}",
                need=f"a token of at most {token}, this driver's",
                fix="stop one of the two drivers; nothing is lost, and the one that holds the lease goes on",
            )
        return self._conditionally(lambda writer: writer.replace(self._key(name), text.encode(), etag)) is not None

    def _recorded(self) -> list[int]:
        return [int(match[1]) for name in self.names("batches/") if (match := re.fullmatch(r"([0-9]+)\.json", name))]


def _record_name(batch: int) -> str:
    return f"batches/{batch}.json"


def _token(text: str) -> int:
    """A record's token; 0 of one that cannot be read, which any driver may replace."""
    try:
        return BatchRecord.model_validate_json(text).token
    except ValidationError:
        return 0
