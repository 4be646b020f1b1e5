"""The lease of a checkpoint: of several drivers, which one starts.

It is the object ``penstock/lease.json`` in the checkpoint. A driver creates it, or replaces a free one, with a token greater by one; it
then renews it every third of its duration, and frees it when it stops. Another driver may take it over if it is free, if its holder is
provably dead or a pod that Kubernetes has removed, or if it has not been renewed for its duration.

It is not what protects the checkpoint: a driver that was frozen does not know that its lease has expired. The token does, which the
checkpoint's records carry, together with writes that S3 decides (see `penstock.jobs.storage.conditional`).

Expiry does not depend on a machine's clock: S3 gives the age of the lease, from the answer's Date and the object's LastModified, and what
remains is measured by a monotonic clock. Nothing is compared with the time of a machine.

Cost: three or four requests to take it, two more for each look at one that is held, one PUT per renewal, that is by time and not by
micro-batch, and one PUT to free it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from penstock.jobs.storage.conditional import ConditionalWriter
from penstock.jobs.storage.errors import BucketUnreachable, CheckpointDamaged, CheckpointHeld, LeaseLost
from penstock.jobs.storage.lease_holder import LeaseHolder
from penstock.jobs.storage.s3 import client
from penstock.sizing.errors import PenstockError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

NAME = "penstock/lease.json"
DURATION_S = 30.0
# S3's Date and LastModified are whole seconds, so an age may appear up to this much too great.
_PRECISION_S = 1.0
_RENEWALS_PER_DURATION = 3
# A waiting driver looks this often per duration: a lease that is freed is taken soon.
_LOOKS_PER_DURATION = 15
# Of a request; together they take no longer than until the next renewal.
_ATTEMPTS = 3


class LeaseState(StrEnum):
    """What a lease's holder does."""

    HELD = "held"
    # It finishes its last micro-batch: a driver that waits for the lease waits on.
    STOPPING = "stopping"
    RELEASED = "released"


class LeaseRecord(BaseModel):
    """The object's content.

    Args:
        token: grows by one with each driver that takes the lease.
        holder: the driver's process.
        since: when it took the lease, by its clock; for people only.
        duration_s: seconds that the lease lasts without a renewal.
        renewal: number of renewals; makes every content, and so every ETag, another.
        state: what the holder does.
        idle: whether all of its queries had read everything after their last micro-batches, and none has begun since.
    """

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, validate_by_name=True)

    token: int = Field(ge=1)
    holder: LeaseHolder
    since: datetime
    duration_s: float = Field(gt=0)
    renewal: int = Field(default=0, ge=0)
    state: LeaseState = LeaseState.HELD
    idle: bool = False


@dataclass(frozen=True)
class StoredLease:
    """The lease as S3 returned it.

    Args:
        record: its content.
        etag: of the content.
        age_s: seconds since it was written.
        renewed: when it was written.
    """

    record: LeaseRecord
    etag: str
    age_s: float
    renewed: datetime

    @property
    def until(self) -> datetime:
        """When it expires without a further renewal."""
        return self.renewed + timedelta(seconds=self.record.duration_s)


class LeaseFile:
    """The lease of a checkpoint, free or held.

    Args:
        checkpoint: ``s3a://bucket/folder``.
        holder: the calling process.
        duration_s: how long the lease lasts without a renewal, in seconds.
        s3: client; by default a job's own.
    """

    def __init__(self, checkpoint: str, holder: LeaseHolder, duration_s: float = DURATION_S, s3: S3Client | None = None) -> None:
        place = urlsplit(checkpoint)
        self.uri = f"{checkpoint}/{NAME}"
        self._bucket, self._key = place.netloc, f"{place.path.strip('/')}/{NAME}"
        self._holder = holder
        self._duration_s = duration_s
        self._given = s3

    def take(
        self,
        first_token: Callable[[], int],
        stop: threading.Event,
        waiting: Callable[[Mapping[str, object]], None],
    ) -> Lease | None:
        """Takes the lease, after waiting for one that is not renewed any more to expire.

        Args:
            first_token: the token of a lease that does not exist yet.
            stop: ends the waiting.
            waiting: called once when it begins to wait, with who holds the lease, since when and until when.

        Returns:
            The lease, renewed by a thread until it is released; None if `stop` was set.

        Raises:
            CheckpointHeld: JOB-080, the holder is alive.
            ConditionalWriteFailed: JOB-082.
            BucketUnreachable: JOB-009.
            CheckpointDamaged: JOB-008, the object is not a lease.
        """
        waited = False

        def waits(stored: StoredLease) -> None:
            nonlocal waited
            if not waited:
                waiting(_described(stored))
            waited = True

        while not stop.is_set():
            stored = self.read()
            if stored is None:
                lease = self._created(first_token())
            elif self._free(stored) or self._expires(stored, stop, waits):
                lease = self._taken_over(stored)
            else:
                continue
            if lease is not None:
                return lease
        return None

    def read(self) -> StoredLease | None:
        """The lease; None if there is none.

        Raises:
            BucketUnreachable: JOB-009.
            CheckpointDamaged: JOB-008.
        """
        with self._s3_errors():
            # To a job, which may only list its own folder, GET of a missing object is a denied request.
            if not self._s3.list_objects_v2(Bucket=self._bucket, Prefix=self._key, MaxKeys=1).get("Contents"):
                return None
            answer = self._s3.get_object(Bucket=self._bucket, Key=self._key)
            body = answer["Body"].read()
        try:
            record = LeaseRecord.model_validate_json(body)
        except ValidationError as error:
            fix = "make sure that no driver runs on this checkpoint, then delete the object"
            raise CheckpointDamaged(path=self.uri, given=error.errors()[0]["msg"], need="a lease", fix=fix) from error
        date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        age = parsedate_to_datetime(date) - answer["LastModified"] if date else timedelta()
        return StoredLease(record, answer["ETag"], age.total_seconds(), answer["LastModified"])

    def replace(self, record: LeaseRecord, etag: str) -> str | None:
        """Replaces the lease if it is unchanged.

        Returns:
            Its new ETag; None if it has changed.

        Raises:
            ConditionalWriteFailed: JOB-082.
            ClientError: S3 rejects the request.
        """
        return self._writer.replace(self._key, _body(record), etag)

    def _free(self, stored: StoredLease) -> bool:
        record = stored.record
        return (
            record.state is LeaseState.RELEASED
            or record.holder.seen_dead_by(self._holder)
            or record.holder.removed_for(self._holder)
            or stored.age_s >= record.duration_s + _PRECISION_S
        )

    def _expires(self, stored: StoredLease, stop: threading.Event, waits: Callable[[StoredLease], None]) -> bool:
        """Waits for the end of a lease's time.

        Returns:
            Whether it has expired; False if it must be looked at anew: it was freed, its holder is stopping, or `stop` was set.

        Raises:
            CheckpointHeld: JOB-080, it was renewed.
        """
        waits(stored)
        ends = time.monotonic() + stored.record.duration_s + _PRECISION_S - max(0.0, stored.age_s)
        while (left := ends - time.monotonic()) > 0:
            if stop.wait(min(left, stored.record.duration_s / _LOOKS_PER_DURATION)):
                return False
            now = self.read()
            if now is None or (now.etag != stored.etag and now.record.state is not LeaseState.HELD):
                return False
            if now.etag != stored.etag:
                raise _held(self.uri, now)
        return True

    def _created(self, token: int) -> Lease | None:
        record = self._own(token)
        with self._s3_errors():
            etag = self._writer.create(self._key, _body(record))
        return None if etag is None else Lease(self, record, etag)

    def _taken_over(self, stored: StoredLease) -> Lease | None:
        record = self._own(stored.record.token + 1)
        with self._s3_errors():
            etag = self.replace(record, stored.etag)
        return None if etag is None else Lease(self, record, etag)

    @contextmanager
    def _s3_errors(self) -> Iterator[None]:
        try:
            yield
        except (ClientError, BotoCoreError) as error:
            need, fix = "a bucket with read and write access", "check its name and the job's permissions"
            raise BucketUnreachable(path=self.uri, given=str(error), need=need, fix=fix) from error

    def _own(self, token: int) -> LeaseRecord:
        return LeaseRecord(token=token, holder=self._holder, since=datetime.now(UTC), duration_s=self._duration_s)

    @cached_property
    def _writer(self) -> ConditionalWriter:
        return ConditionalWriter(self._s3, self._bucket, attempts=_ATTEMPTS)

    @cached_property
    def _s3(self) -> S3Client:
        return self._given or client(attempts=_ATTEMPTS, timeout_s=self._duration_s / (_RENEWALS_PER_DURATION * _ATTEMPTS))


class Lease:
    """A lease that this process has taken; a thread renews it until it is released or lost.

    Args:
        file: where it is.
        record: its content.
        etag: of the content.
    """

    def __init__(self, file: LeaseFile, record: LeaseRecord, etag: str) -> None:
        self.token = record.token
        # Set when the lease is known to be another driver's, or has been released.
        self.over = threading.Event()
        # Whether the queries have read everything, see `LeaseRecord`; others learn of it with the next renewal.
        self.idle = False
        self._file, self._record, self._etag = file, record, etag
        self._renewed = time.monotonic()
        self._state = record.state
        self._lost: str | None = None
        self._requests = threading.Lock()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._renew_until_over, name="penstock-lease", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> bool:
        """Whether the lease is known to be another driver's. Costs no request."""
        return self._lost is not None

    @property
    def sure(self) -> bool:
        """Whether no other driver can have taken the lease yet. Costs no request."""
        return not self.over.is_set() and time.monotonic() - self._renewed < self._record.duration_s

    def check(self) -> None:
        """Refuses to go on with a lost lease. Costs a request only if the last renewal is too long ago: this process was frozen, or S3
        does not answer. Without an answer it goes on, because the lease decides only who starts.

        Raises:
            LeaseLost: JOB-081.
        """
        if not self.over.is_set() and not self.sure:
            self._renew()
        self._refuse_lost()

    def confirm(self) -> None:
        """Reads the lease and refuses to go on with a lost one.

        Raises:
            LeaseLost: JOB-081.
            BucketUnreachable: JOB-009.
        """
        with self._requests:
            stored = self._file.read()
            if not self.over.is_set() and not self._is_own(stored):
                self._lose(stored)
        self._refuse_lost()

    def stopping(self) -> None:
        """Lets a driver that waits for the lease know that this one is about to stop."""
        if self._state is LeaseState.HELD:
            self._state = LeaseState.STOPPING
            self._wake.set()

    def release(self) -> None:
        """Ends the renewals and frees the lease, if it is still this process's. Without an answer from S3 it expires."""
        self._state = LeaseState.RELEASED
        self._renew()
        self.over.set()
        self._wake.set()
        self._thread.join()

    def _renew_until_over(self) -> None:
        while not self.over.is_set():
            duration_s = self._record.duration_s
            # After a renewal without an answer, the next one comes sooner.
            answered = time.monotonic() - self._renewed < duration_s / _RENEWALS_PER_DURATION
            self._wake.wait(duration_s / (_RENEWALS_PER_DURATION if answered else _LOOKS_PER_DURATION))
            self._wake.clear()
            self._renew()

    def _renew(self) -> None:
        with self._requests:
            if self.over.is_set():
                return
            try:
                asked = time.monotonic()
                etag = self._replaced(self._etag) or self._replaced_after_a_lost_answer()
            except (PenstockError, ClientError, BotoCoreError) as error:
                print(f"WARN the lease {self._file.uri} is not renewed yet: {error}", file=sys.stderr)
                return
            if etag is not None:
                self._etag, self._renewed = etag, asked

    def _replaced(self, etag: str) -> str | None:
        self._record = self._record.model_copy(update={"renewal": self._record.renewal + 1, "state": self._state, "idle": self.idle})
        return self._file.replace(self._record, etag)

    def _replaced_after_a_lost_answer(self) -> str | None:
        """The lease has changed: by an earlier renewal of this process that was executed but not answered, or by another driver."""
        stored = self._file.read()
        if stored is not None and self._is_own(stored):
            return self._replaced(stored.etag)
        self._lose(stored)
        return None

    def _is_own(self, stored: StoredLease | None) -> bool:
        """The token alone does not tell: where the object was deleted, the next driver takes a token that only records can rule out."""
        return stored is not None and (stored.record.token, stored.record.holder) == (self.token, self._record.holder)

    def _lose(self, stored: StoredLease | None) -> None:
        self._lost = f"{_described(stored)['holder']} since {_described(stored)['since']}" if stored else "nobody: the object was deleted"
        self.over.set()

    def _refuse_lost(self) -> None:
        if self._lost is not None:
            raise LeaseLost(
                path=self._file.uri,
                given=f"held by {self._lost}",
                need=f"the lease with token {self.token}, which this driver had taken",
                fix="stop one of the two drivers; nothing is lost, and the one that holds the lease goes on",
            )


def _described(stored: StoredLease) -> dict[str, object]:
    since = stored.record.since.astimezone(UTC).isoformat(timespec="seconds")
    return {"holder": str(stored.record.holder), "since": since, "until": stored.until.astimezone(UTC).isoformat(timespec="seconds")}


def _held(uri: str, stored: StoredLease) -> CheckpointHeld:
    described = _described(stored)
    return CheckpointHeld(
        path=uri,
        given=f"held by {described['holder']} since {described['since']}, renewed until {described['until']}",
        need="a checkpoint without a running driver",
        fix="stop the other driver, or give this job a new metadata.name; a lease that is no longer renewed expires by itself",
    )


def _body(record: LeaseRecord) -> bytes:
    return record.model_dump_json(by_alias=True).encode()
