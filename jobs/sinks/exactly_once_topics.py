"""Kafka topics as sinks, each record exactly once.

How a micro-batch gets there:

1. Its rows are dealt to tasks by their key, or by their content where they have none: at most one task a partition of the topic, and as
   many as the cores of the job.
2. The driver writes a manifest with what each task gets (rows and a digest), once and only if there is none for that micro-batch.
   From here on the micro-batch is decided.
3. Each task writes its share in one transaction of its own, with its mark in it (`penstock.jobs.sinks.transactions`). A task that finds
its mark
   writes nothing. A task whose rows are not those of the manifest aborts.

After a crash Spark runs the micro-batch again, with the manifest's number of tasks: what a task had committed is recognised by its mark,
what it had open is aborted by its successor, which takes over its transactional id. The same goes for a driver that was taken for dead:
whoever comes later fences it, and who of the two commits a share does not matter, for both have the same.

Guarantee: exactly once, a crash included, for readers with ``isolation.level=read_committed``; a reader may see one task's share of a
micro-batch before another's. Records of one key keep the order that the rows have. A replay has to give the same rows: what is known not to
is refused before the query starts (`penstock.jobs.driver.determinism`, JOB-062), what turns out not to stops the job (JOB-007). The brokers
forget marks
some days after they were written (``offsets.retention.minutes``): a micro-batch that was cut off longer ago is not guessed at (JOB-063).
Cost: the rows are read twice (for the manifest and for the topic), a shuffle where the topic has several partitions, a PUT for the
manifest, and per task a producer with six round trips to the brokers. Readers see records when their task's transaction ends.
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
from penstock.jobs.errors import MarksDisagree, MarksExpired, ReplayDiffers, TransactionsRefused
from penstock.jobs.sinks import manifests
from penstock.jobs.sinks.kafka_records import records
from penstock.jobs.sinks.parts import wrapped
from penstock.jobs.sinks.sink import Batch, SinkContext
from penstock.jobs.sinks.topics import admin_of, cluster_with
from penstock.jobs.sinks.transactions import CALL_S, DIFFERS, FOREIGN, OUTCOME_SCHEMA, Share, TransactionWriter, insist, producer_settings
from penstock.jobs.spec import KafkaSink
from penstock.jobs.storage.checkpoint import RETAINED_BATCHES, Checkpoint

# Source: Apache Kafka, "Broker Configs", with the defaults.
_LIMIT, _LIMIT_MS = "transaction.max.timeout.ms", 900_000
_MARKS_KEPT, _MARKS_KEPT_MINUTES = "offsets.retention.minutes", 10_080


class TaskShare(BaseModel):
    """What a task has to write: its number, its rows, and the sum of their hashes modulo 2^64 as a signed number."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: int
    rows: int
    digest: int


class TopicManifest(BaseModel):
    """A micro-batch's records, decided once.

    Args:
        batch: Spark's number of the micro-batch.
        tasks: among how many the rows are dealt.
        token: tells this manifest from any other.
        written_ms: when it was written, in epoch milliseconds by the clock.
        shares: of the tasks that have rows, by their numbers.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    batch: int
    tasks: int
    token: str
    written_ms: int
    shares: tuple[TaskShare, ...]


@dataclass
class ExactlyOnceTopic:
    """A topic to write.

    Args:
        name: of the sink in the spec.
        sink: as the spec has it.
        brokers: how to reach them.
        job: name of the job, with which the names of its groups and transactional ids begin: its rights on them go by that.
        identity: tells this checkpoint from any other.
        checkpoint: where the manifests lie.
        updates: whether a row stands for the one with the same key before it.
        partitions: of the topic, once `check` has looked.
        marks_kept_ms: for how long the brokers keep marks, likewise.
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
        """The sink of a spec."""
        return cls(name, sink, context.kafka, context.job, context.identity, context.checkpoint, context.updates)

    def check(self) -> None:
        """Looks whether the topic is there and the brokers let the job write to it in transactions as long as it asks.

        Raises:
            TopicNotFound: JOB-002.
            TransactionsRefused: JOB-060.
        """
        admin = admin_of(self.brokers)
        settings: dict[str, int] = {}
        try:
            known = cluster_with(admin, self.sink.topic)
            self.partitions = len(known.topics[self.sink.topic].partitions)
            settings = _settings(admin, next(iter(known.brokers)))
            # The brokers themselves say whether they take the time-out, and whether the job has the right.
            producer = Producer(producer_settings(self.brokers, f"{self.group}.check", self.sink.transaction_timeout))
            insist(lambda: producer.init_transactions(CALL_S))
        except KafkaException as error:
            raise self._refused(error.args[0], settings) from None
        self.marks_kept_ms = settings.get(_MARKS_KEPT, _MARKS_KEPT_MINUTES) * 60_000

    def idle(self, now_ms: int) -> None:
        """Nothing is held back."""

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Writes the rows of a micro-batch, as `penstock.jobs.sinks.kafka_records.records` says.

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
            shares={share.task: Share(share.rows, share.digest) for share in manifest.shares},
        )
        if manifest.shares:
            self._judge(_repartitioned(hashed, manifest.tasks).mapInArrow(writer, OUTCOME_SCHEMA).collect(), manifest)
        self.checkpoint.delete(self._manifest_name(batch.number - RETAINED_BATCHES))

    @property
    def group(self) -> str:
        """The consumer group that holds the marks."""
        return f"penstock.{self.job}.{self.identity}.{self.name}"

    def _decided(self, hashed: DataFrame, batch: Batch) -> tuple[TopicManifest, bool]:
        """The micro-batch's manifest, and whether this call has written it."""
        tasks = max(1, min(self.partitions, hashed.sparkSession.sparkContext.defaultParallelism))
        shares = _shares(hashed, tasks) if batch.rows else ()
        manifest = TopicManifest(batch=batch.number, tasks=tasks, token=uuid.uuid4().hex, written_ms=_now_ms(), shares=shares)
        name = self._manifest_name(batch.number)
        if self.checkpoint.put_once(name, manifest.model_dump_json()):
            return manifest, True
        earlier = manifests.read(self.checkpoint, name, TopicManifest)
        assert earlier is not None
        current = shares if earlier.tasks == tasks else _shares(hashed, earlier.tasks)
        if current != earlier.shares:
            raise self._differs(earlier, current)
        self._must_be_remembered(earlier)
        return earlier, False

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
            given = f"a marker of batch {foreign[0]['marked']} in group {self.group}"
            need = f"markers of this checkpoint only, which is at batch {manifest.batch}"
            fix = "run only one copy of a checkpoint at a time; remove penstock/identity from a copy that is to run separately"
            raise MarksDisagree(path=f"sink {self.name}, batch {manifest.batch}", given=given, need=need, fix=fix)
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

    def _refused(self, error: KafkaError, settings: Mapping[str, int]) -> TransactionsRefused:
        if error.code() == KafkaError.INVALID_TRANSACTION_TIMEOUT:
            limit_ms = settings.get(_LIMIT, _LIMIT_MS)
            need = f"at most the brokers' transaction.max.timeout.ms, {limit_ms} ms"
            fix = f"transactionTimeout: {limit_ms // 1000}s, or raise it on the brokers"
            given = f"transactionTimeout of {self.sink.transaction_timeout} ms"
            return TransactionsRefused(path=f"sink {self.name}", given=given, need=need, fix=fix)
        fix = f"check the address, and the job's permissions on transactional ids and groups with the prefix penstock.{self.job}."
        return TransactionsRefused(path=f"sink {self.name}", given=error.str(), need="brokers that accept transactions", fix=fix)

    def _manifest_name(self, batch: int) -> str:
        return f"sinks/{self.name}/{batch}.json"


def _task(tasks: int) -> Column:
    """The task of a record: records of one key go to one task, those without a key by their content."""
    return F.pmod(F.xxhash64(F.coalesce("key", "value")), F.lit(tasks)).cast("int")


def _shares(hashed: DataFrame, tasks: int) -> tuple[TaskShare, ...]:
    counted = hashed.groupBy(_task(tasks).alias("task")).agg(
        F.count("*").alias("rows"), F.sum(F.col("hash").cast("decimal(38,0)")).alias("digest")
    )
    task_shares = [TaskShare(task=row["task"], rows=row["rows"], digest=wrapped(int(row["digest"]))) for row in counted.collect()]
    return tuple(sorted(task_shares, key=lambda share: share.task))


def _repartitioned(hashed: DataFrame, tasks: int) -> DataFrame:
    """The records at their tasks, in the order in which the rows came."""
    if tasks == 1:
        return hashed.select(F.lit(0).alias("task"), "key", "value", "hash").coalesce(1)
    # A shuffle reads its blocks in any order.
    ordered = hashed.select(_task(tasks).alias("task"), "key", "value", "hash", F.monotonically_increasing_id().alias("order"))
    return ordered.repartitionById(tasks, "task").sortWithinPartitions("order").drop("order")


def _total(shares: Iterable[TaskShare]) -> tuple[int, int]:
    some = list(shares)
    return sum(share.rows for share in some), wrapped(sum(share.digest for share in some))


def _settings(admin: AdminClient, broker: int) -> dict[str, int]:
    """The brokers' limits that bear on transactions; those that the job has no right to see are left out."""
    resource = ConfigResource(ResourceType.BROKER, str(broker))
    try:
        settings = admin.describe_configs([resource], request_timeout=CALL_S)[resource].result()
    except KafkaException:
        return {}
    return {name: int(settings[name].value or 0) for name in (_LIMIT, _MARKS_KEPT) if name in settings}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
