"""Kafka topics as sinks with exactly-once delivery.

How a micro-batch is written:

1. Its rows are repartitioned by key, or by content if they have no key, among at most as many tasks as the topic has partitions and the
   job has cores.
2. The driver writes a manifest with the share of each task (number of rows and a digest), once and only if the micro-batch has none yet.
   From then on the micro-batch is decided.
3. Each task writes its share and its mark in one transaction (`penstock.jobs.sinks.transactions`). A task that finds its mark writes
   nothing. A task whose rows differ from the manifest aborts.

After a crash Spark runs the micro-batch again with the number of tasks of the manifest. What a task had committed is recognized by its
mark; an open transaction is aborted by the task that takes over its transactional id. The same holds for a driver that was considered
dead: the later one fences it, and it does not matter which of the two commits a share, since both have the same. If the dead one goes on
and fences a task of its successor, that task runs again. Manifests expire: a driver that was suspended for long would write one for a
micro-batch whose manifest is deleted, so later ones are looked for after each manifest.

Guarantee: exactly once, crashes included, for readers with ``isolation.level=read_committed``; a reader may see the share of one task
before that of another. Records of a key keep the order of the rows. A replay must produce the same rows: known causes of differing rows are
rejected before the query starts (`penstock.jobs.driver.determinism`, JOB-062), any other difference stops the job (JOB-007). The brokers
delete marks some days after they were written (``offsets.retention.minutes``): a micro-batch interrupted longer ago than that stops the job
(JOB-063). Cost: the rows are read twice (for the manifest and for the topic), a shuffle if the topic has several partitions, a PUT and a
LIST for the manifest, and a producer per task with six round trips to the brokers. Readers see records when the transaction of their task
commits.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType
from pydantic import BaseModel, ConfigDict
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.kafka.heard import Heard
from penstock.jobs.sinks import manifests
from penstock.jobs.sinks.errors import ClientPropertiesRefused, MarksDisagree, MarksExpired, ReplayDiffers, TransactionsRefused
from penstock.jobs.sinks.kafka_records import records
from penstock.jobs.sinks.parts import wrapped
from penstock.jobs.sinks.sink import Batch, SinkContext
from penstock.jobs.sinks.topics import admin_of, cluster_with, raise_if_refused
from penstock.jobs.sinks.transactions import CALL_S, DIFFERS, FOREIGN, OUTCOME_SCHEMA, Share, TransactionWriter, insist, producer_settings
from penstock.jobs.spec import KafkaSink
from penstock.jobs.spec.client_properties import as_text
from penstock.jobs.storage.checkpoint import Checkpoint

# Source: Apache Kafka, "Broker Configs", with the default values.
_LIMIT, _LIMIT_MS = "transaction.max.timeout.ms", 900_000
_MARKS_KEPT, _MARKS_KEPT_MINUTES = "offsets.retention.minutes", 10_080


class TaskShare(BaseModel):
    """The share of a task: its number, the number of its rows, and the sum of their hashes modulo 2^64 as a signed number."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: int
    rows: int
    digest: int


class TopicManifest(BaseModel):
    """The records of a micro-batch, decided once.

    Args:
        batch: Spark's number of the micro-batch.
        tasks: number of tasks that the rows are repartitioned among.
        token: unique id of the manifest.
        written_ms: wall-clock time of writing, in epoch milliseconds.
        shares: shares of the tasks that have rows, ordered by task number.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    batch: int
    tasks: int
    token: str
    written_ms: int
    shares: tuple[TaskShare, ...]


@dataclass
class ExactlyOnceTopic:
    """Sink that writes a topic.

    Args:
        name: name of the sink in the spec.
        sink: sink of the spec.
        brokers: connection to the brokers.
        job: name of the job, the prefix of its groups and transactional ids, which its ACLs refer to.
        identity: unique id of the checkpoint.
        checkpoint: checkpoint with the manifests.
        updates: whether a row replaces the earlier one with its key.
        partitions: number of partitions of the topic, set by `check`.
        marks_kept_ms: how long the brokers keep marks, in milliseconds, set by `check`.
    """

    name: str
    sink: KafkaSink
    brokers: KafkaAccess
    job: str
    identity: str
    checkpoint: Checkpoint
    updates: bool = True
    partitions: int = field(default=0)
    marks_kept_ms: int = field(default=_MARKS_KEPT_MINUTES * 60_000)

    @classmethod
    def of(cls, name: str, sink: KafkaSink, context: SinkContext) -> ExactlyOnceTopic:
        """Builds the sink from its spec."""
        return cls(name, sink, context.kafka, context.job, context.identity, context.checkpoint, context.updates)

    def check(self) -> None:
        """Checks that the topic exists and that the brokers accept the job's transactions with their time-out.

        Raises:
            TopicNotFound: JOB-002.
            TopicAccessDenied: JOB-125.
            TransactionsRefused: JOB-060.
            ClientPropertiesRefused: JOB-110.
            KafkaCredentialsRefused: JOB-111.
        """
        heard = Heard(self.brokers)
        admin = admin_of(self.brokers, heard)
        settings: dict[str, int] = {}
        try:
            known = cluster_with(admin, self.brokers, self.sink.topic)
            self.partitions = len(known.topics[self.sink.topic].partitions)
            settings = _settings(admin, next(iter(known.brokers)))
            # The brokers validate the time-out and the job's permission.
            timeout_ms, properties = self.sink.transaction_timeout, as_text(self.sink.properties)
            producer = Producer(producer_settings(self.brokers, f"{self.group}.check", timeout_ms, properties))
            insist(lambda: producer.init_transactions(CALL_S))
        except KafkaException as error:
            raise_if_refused(admin, heard)
            raise self._refused(error.args[0], settings) from None
        self.marks_kept_ms = settings.get(_MARKS_KEPT, _MARKS_KEPT_MINUTES) * 60_000

    def idle(self, now_ms: int) -> None:
        """Does nothing: no rows are held back."""

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Writes the rows of a micro-batch, formatted by `penstock.jobs.sinks.kafka_records.records`.

        Raises:
            BadDeclaration: JOB-004.
            ReplayDiffers: JOB-007.
            CheckpointDamaged: JOB-008.
            MarksDisagree: JOB-061.
            MarksExpired: JOB-063.
        """
        to_write = records(self.sink, rows, updates=self.updates)
        hashed = to_write.select("key", "value", F.xxhash64(F.col("key").isNull(), "key", "value").alias("hash"))
        manifest, fresh = self._decided(hashed, batch)
        writer = TransactionWriter(
            access=self.brokers,
            topic=self.sink.topic,
            name=self.group,
            timeout_ms=self.sink.transaction_timeout,
            batch=batch.number,
            token=manifest.token,
            fresh=fresh,
            properties=as_text(self.sink.properties),
            shares={share.task: Share(share.rows, share.digest) for share in manifest.shares},
        )
        if manifest.shares:
            self._judge(_repartitioned(hashed, manifest.tasks, apart=batch.apart).mapInArrow(writer, OUTCOME_SCHEMA).collect(), manifest)
        self.checkpoint.delete_expired(self._manifest_name, batch.number - self.checkpoint.retained)

    @property
    def group(self) -> str:
        """Consumer group that holds the marks."""
        return f"penstock.{self.job}.{self.identity}.{self.name}"

    def _decided(self, hashed: DataFrame, batch: Batch) -> tuple[TopicManifest, bool]:
        """The manifest of the micro-batch, and whether this call wrote it."""
        tasks = max(1, min(self.partitions, hashed.sparkSession.sparkContext.defaultParallelism))
        shares = _shares(hashed, tasks) if batch.rows else ()
        manifest = TopicManifest(batch=batch.number, tasks=tasks, token=uuid.uuid4().hex, written_ms=_now_ms(), shares=shares)
        name = self._manifest_name(batch.number)
        if self.checkpoint.put_once(name, manifest.model_dump_json()):
            if shares:
                self._must_be_the_last(manifest)
            return manifest, True
        earlier = manifests.read(self.checkpoint, name, TopicManifest)
        assert earlier is not None
        current = shares if earlier.tasks == tasks else _shares(hashed, earlier.tasks)
        if current != earlier.shares:
            raise self._differs(earlier, current)
        self._must_be_remembered(earlier)
        return earlier, False

    def _must_be_the_last(self, manifest: TopicManifest) -> None:
        names = self.checkpoint.names(self._folder)
        last = max((int(name.removesuffix(".json")) for name in names if name.endswith(".json")), default=manifest.batch)
        if last > manifest.batch:
            self.checkpoint.delete(self._manifest_name(manifest.batch))
            raise self._foreign(f"a manifest of batch {last}", manifest.batch)

    def _foreign(self, given: str, batch: int) -> MarksDisagree:
        need = f"markers and manifests of this checkpoint only, which is at batch {batch}"
        fix = "run only one copy of a checkpoint at a time; remove penstock/identity from a copy that is to run separately"
        return MarksDisagree(path=f"sink {self.name}, batch {batch}", given=given, need=need, fix=fix)

    def _must_be_remembered(self, manifest: TopicManifest) -> None:
        age_ms = _now_ms() - manifest.written_ms
        if manifest.shares and age_ms > self.marks_kept_ms:
            path = f"{self.checkpoint.uri}/penstock/{self._manifest_name(manifest.batch)}"
            rows = sum(share.rows for share in manifest.shares)
            need = f"a restart within {self.marks_kept_ms / 86_400_000:g} days, the brokers' retention of markers"
            fix = f"check whether topic {self.sink.topic} has the micro-batch's {rows} rows; if it has none of them, delete the manifest"
            raise MarksExpired(path=path, given=f"{age_ms / 86_400_000:.1f} days", need=need, fix=fix)

    def _judge(self, outcomes: list[Row], manifest: TopicManifest) -> None:
        foreign = [row for row in outcomes if row["outcome"] == FOREIGN]
        if foreign:
            raise self._foreign(f"a marker of batch {foreign[0]['marked']} in group {self.group}", manifest.batch)
        differing = {row["task"] for row in outcomes if row["outcome"] == DIFFERS}
        if differing or {row["task"] for row in outcomes} != {share.task for share in manifest.shares}:
            task_shares = tuple(
                TaskShare(task=row["task"], rows=row["rows"], digest=row["digest"]) for row in outcomes if row["task"] in differing
            )
            raise self._differs(manifest, task_shares)

    def _differs(self, manifest: TopicManifest, task_shares: Iterable[TaskShare]) -> ReplayDiffers:
        rows, digest = _total(manifest.shares)
        other_rows, other_digest = _total(task_shares)
        need = f"the {rows} rows of the first run (digest {digest}); the replay has {other_rows} (digest {other_digest})"
        fix = "remove random, clock-dependent and unordered expressions from the query, or persist their results before they are used"
        return ReplayDiffers(path=f"sink {self.name}, batch {manifest.batch}", need=need, fix=fix)

    def _refused(self, error: KafkaError, settings: Mapping[str, int]) -> TransactionsRefused | ClientPropertiesRefused:
        if error.code() == KafkaError._INVALID_ARG and self.sink.properties:
            path, need = f"sink {self.name}", "properties that the client of an exactly-once sink, librdkafka, takes"
            return ClientPropertiesRefused(
                path=path, given=error.str().strip(), need=need, fix=f"correct spec.sinks.{self.name}.kafka.properties"
            )
        if error.code() == KafkaError.INVALID_TRANSACTION_TIMEOUT:
            limit_ms = settings.get(_LIMIT, _LIMIT_MS)
            need = f"at most the brokers' transaction.max.timeout.ms, {limit_ms} ms"
            fix = f"transactionTimeout: {limit_ms // 1000}s, or raise it on the brokers"
            given = f"transactionTimeout of {self.sink.transaction_timeout} ms"
            return TransactionsRefused(path=f"sink {self.name}", given=given, need=need, fix=fix)
        fix = f"check the address, and the job's permissions on transactional ids and groups with the prefix penstock.{self.job}."
        return TransactionsRefused(path=f"sink {self.name}", given=error.str(), need="brokers that accept transactions", fix=fix)

    def _manifest_name(self, batch: int) -> str:
        return f"{self._folder}{batch}.json"

    @property
    def _folder(self) -> str:
        return f"sinks/{self.name}/"


def _task(tasks: int) -> Column:
    """Task of a record: all records of a key go to the same task; records without a key are repartitioned by content."""
    return F.pmod(F.xxhash64(F.coalesce("key", "value")), F.lit(tasks)).cast("int")


def _shares(hashed: DataFrame, tasks: int) -> tuple[TaskShare, ...]:
    counted = hashed.groupBy(_task(tasks).alias("task")).agg(
        F.count("*").alias("rows"), F.sum(F.col("hash").cast("decimal(38,0)")).alias("digest")
    )
    task_shares = [TaskShare(task=row["task"], rows=row["rows"], digest=wrapped(int(row["digest"]))) for row in counted.collect()]
    return tuple(sorted(task_shares, key=lambda share: share.task))


def _repartitioned(hashed: DataFrame, tasks: int, *, apart: bool) -> DataFrame:
    """The records, repartitioned among the tasks, in the order of the rows; see `Batch` for `apart`."""
    if tasks == 1 and not apart:
        return hashed.select(F.lit(0).alias("task"), "key", "value", "hash").coalesce(1)
    # A shuffle reads its blocks in any order.
    ordered = hashed.select(_task(tasks).alias("task"), "key", "value", "hash", F.monotonically_increasing_id().alias("order"))
    return ordered.repartitionById(tasks, "task").sortWithinPartitions("order").drop("order")


def _total(shares: Iterable[TaskShare]) -> tuple[int, int]:
    some = list(shares)
    return sum(share.rows for share in some), wrapped(sum(share.digest for share in some))


def _settings(admin: AdminClient, broker: int) -> dict[str, int]:
    """The brokers' limits for transactions, without those that the job has no permission to read."""
    resource = ConfigResource(ResourceType.BROKER, str(broker))
    try:
        settings = admin.describe_configs([resource], request_timeout=CALL_S)[resource].result()
    except KafkaException:
        return {}
    return {name: int(settings[name].value or 0) for name in (_LIMIT, _MARKS_KEPT) if name in settings}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
