"""The whole document."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from penstock.jobs.spec.initial_offsets import InitialOffsets
from penstock.jobs.spec.kinds import OneKind
from penstock.jobs.spec.part import DurationMs, Name, Part, Topic
from penstock.jobs.spec.resources import Checkpointing, Driver, Executor, Load, Restart, State
from penstock.jobs.spec.sinks import COLUMN_PATTERN, FileSink, KafkaSink, Sink, ToFiles, ToKafka
from penstock.jobs.spec.sources import FilesSource, FromFiles, FromKafka, KafkaSource, Source, Table
from penstock.jobs.spec.times import TimeMs
from penstock.jobs.spec.topics import TopicSettings
from penstock.sizing.units import DURATION_PATTERN, duration_ms

# A module, or a .sql file beside the spec.
APP_PATTERN = r"^([A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*|[A-Za-z0-9_-][A-Za-z0-9._-]*\.sql)$"
FUNCTION_PATTERN = r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*$"
REFERENCE_PATTERN = r"^([A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*|.+\.jsonl)$"


def _trigger(value: object) -> object:
    return value if value == "availableNow" else duration_ms(value)


Trigger = Annotated[
    int | Literal["availableNow"],
    BeforeValidator(_trigger),
    WithJsonSchema({"anyOf": [{"const": "availableNow"}, {"type": "string", "pattern": DURATION_PATTERN}]}),
]


class Metadata(Part):
    """Name of the job, from which the names of its resources are derived."""

    name: Name


Function = Annotated[str, Field(pattern=FUNCTION_PATTERN)]


# Kind of a connection. ``http`` is any endpoint, ``socket`` a TCP server that sends lines of text.
ConnectionKind = Literal["postgres", "redis", "http", "socket"]
# A bucket, the folder of a job, and the name of its savepoint.
SAVEPOINT_PATTERN = r"^s3a?://[a-z0-9][a-z0-9.-]+/[^/\s]+(/[^/\s]+)*/savepoints/[a-z0-9][a-z0-9-]{0,62}$"
UpgradeMode = Literal["last-state", "savepoint", "stateless"]


class LocalPostgres(Part):
    """A PostgreSQL server.

    Args:
        postgres: ``module:function`` that returns the SQL to initialize an empty PostgreSQL database.
    """

    kind: ClassVar[ConnectionKind] = "postgres"
    postgres: Function

    @property
    def function(self) -> str:
        """The ``module:function``."""
        return self.postgres


class LocalRedis(Part):
    """A Redis server.

    Args:
        redis: ``module:function`` that returns hashes, key -> field -> value, for an empty Redis.
    """

    kind: ClassVar[ConnectionKind] = "redis"
    redis: Function

    @property
    def function(self) -> str:
        """The ``module:function``."""
        return self.redis


class LocalHttp(Part):
    """An HTTP endpoint.

    Args:
        http: ``module:function`` that handles a request: (method, path, headers, body) -> (status, body).
    """

    kind: ClassVar[ConnectionKind] = "http"
    http: Function

    @property
    def function(self) -> str:
        """The ``module:function``."""
        return self.http


class LocalSocket(Part):
    """A TCP server.

    Args:
        socket: ``module:function`` that returns the lines of text sent to each client that connects.
    """

    kind: ClassVar[ConnectionKind] = "socket"
    socket: Function

    @property
    def function(self) -> str:
        """The ``module:function``."""
        return self.socket


LocalConnection = Annotated[
    LocalPostgres | LocalRedis | LocalHttp | LocalSocket,
    OneKind("LocalConnection", "What ``penstock up`` starts for a connection of the job; each a real server on a free port."),
]


class Local(Part):
    """Input and expectation of ``penstock up``.

    Args:
        input: topic or path of files -> ``module:function`` that yields records, or a ``.jsonl`` file beside the spec with one value per
            line.
        connections: name of a connection -> local server that replaces it.
        expect: ``module:function`` that computes the expectation from the recorded input.
    """

    input: dict[str, Annotated[str, Field(pattern=REFERENCE_PATTERN)]] = Field(default_factory=dict)
    connections: dict[Name, LocalConnection] = Field(default_factory=dict)
    expect: Annotated[str, Field(pattern=REFERENCE_PATTERN)] | None = None


# A file beside the spec; an absolute path would be another one on each machine.
BESIDE_PATTERN = r"^[^/\s][^\n]*$"


class Packages(Part):
    """Locks of what an app needs in addition to what every job has; paths relative to the spec.

    Args:
        python: lock of Python packages: pip's requirements with one version and hashes for each.
        jars: lock of jars: Maven coordinates or files beside it, each with its SHA-256.
    """

    python: Annotated[str, Field(pattern=BESIDE_PATTERN)] | None = None
    jars: Annotated[str, Field(pattern=BESIDE_PATTERN)] | None = None


class QuarantineLimit(Part):
    """Share of malformed records that stops a job. By default none does.

    Args:
        share: share of the records of a micro-batch above which the job stops without committing it.
        records: minimum number of quarantined records for the share to apply.
    """

    share: Annotated[float, Field(gt=0, lt=1)]
    records: Annotated[int, Field(ge=1)] = 100


class Stages(Part):
    """Tasks of each kind of stage that differ from the parallelism; the greatest number determines the slots.

    Args:
        source: minimum number of tasks that read (Spark's minPartitions).
        stateless: tasks between the sources and the first stateful operator; adds a shuffle.
        stateful: tasks of each stateful operator (``spark.sql.shuffle.partitions``), fixed for the lifetime of the checkpoint.
    """

    source: Annotated[int, Field(ge=1, le=32_768)] | None = None
    stateless: Annotated[int, Field(ge=1, le=32_768)] | None = None
    stateful: Annotated[int, Field(ge=1, le=32_768)] | None = None


class JobSpec(Part):
    """The fields of ``spec``; exactly one of parallelism and load.

    Args:
        upgrade_mode: what a changed job goes on with: the newest checkpoint, of which ``savepoint`` takes a savepoint first, or an empty
            one for ``stateless``.
        restart_nonce: any other number than before makes a change of the spec that changes nothing else.
        rewind_to: a time from whose records on the job reads its topics again, with an empty checkpoint; done once for each value.
        initial_savepoint_path: a savepoint that the job's first generation starts from; a later one does if this and ``restartNonce`` are
            both changed.
        initial_offsets: where the job reads on that starts from that savepoint, on other brokers than those whose offsets it has: at the
            ``savepointTime``, at a time, or at offsets, topic -> partition -> offset; None: at the savepoint's own offsets.
        allow_non_restored_state: whether that savepoint may have queries that the app does not have, whose state is then lost.
        bounded: with ``trigger: availableNow``: the available data is all there is. Once it is read, windows, joins and timers close, and
            the checkpoint is finished.
        progress_timeout: time without progress after which a query hangs and the driver restarts, in ms; None: ten minutes, or longer for
            a long trigger or large state.
        when_idle: behavior of the watermark while all inputs are idle: ``stand``, or advance with the ``clock``, so that windows close.
        connections: name -> kind of the connections that the app reads from ``job.connections``, in addition to those of sources, tables
            and sinks.
        tables: tables for lookups.
        parameters: values that the app reads from ``job.parameters``.
    """

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["parallelism"]}, {"required": ["load"]}]})

    app: Annotated[str, Field(pattern=APP_PATTERN)]
    packages: Packages = Packages()
    parallelism: Annotated[int, Field(ge=1, le=32_768)] | None = None
    stages: Stages = Stages()
    load: Load | None = None
    upgrade_mode: UpgradeMode = "last-state"
    restart_nonce: Annotated[int, Field(ge=0)] | None = None
    rewind_to: TimeMs | None = None
    initial_savepoint_path: Annotated[str, Field(pattern=SAVEPOINT_PATTERN)] | None = None
    initial_offsets: InitialOffsets | None = None
    allow_non_restored_state: bool = False
    executor: Executor
    driver: Driver = Driver()
    trigger: Trigger = 10_000
    progress_timeout: DurationMs | None = None
    restart: Restart = Restart()
    bounded: bool = False
    when_idle: Literal["stand", "clock"] = "stand"
    sources: dict[Name, Source] = Field(default_factory=dict)
    connections: dict[Name, ConnectionKind] = Field(default_factory=dict)
    tables: dict[Name, Table] = Field(default_factory=dict)
    sinks: dict[Name, Sink] = Field(default_factory=dict)
    topics: dict[Topic, TopicSettings] = Field(default_factory=dict)
    quarantine: QuarantineLimit | None = None
    state: State = State()
    checkpoint: Checkpointing = Checkpointing()
    parameters: dict[Annotated[str, Field(pattern=COLUMN_PATTERN)], str | int | float | bool] = Field(default_factory=dict)
    spark_conf: dict[str, str | int | float | bool] = Field(default_factory=dict)
    local: Local = Local()

    @property
    def follows_clock(self) -> bool:
        """Whether the watermark follows the clock: in processing time, or while all inputs are idle. It does not in a run that ends."""
        by_clock = any(source.time is not None and source.time.kind == "processing" for source in self.sources.values())
        return self.trigger != "availableNow" and (by_clock or self.when_idle == "clock")

    @property
    def kafka_sources(self) -> dict[str, KafkaSource]:
        """Sources that read topics, by name."""
        return {name: source.kafka for name, source in self.sources.items() if isinstance(source, FromKafka)}

    @property
    def file_sources(self) -> dict[str, FilesSource]:
        """Sources that read files, by name."""
        return {name: source.files for name, source in self.sources.items() if isinstance(source, FromFiles)}

    @property
    def kafka_sinks(self) -> dict[str, KafkaSink]:
        """Sinks that write topics, by name."""
        return {name: sink.kafka for name, sink in self.sinks.items() if isinstance(sink, ToKafka)}

    @property
    def file_sinks(self) -> dict[str, FileSink]:
        """Sinks that write files, by name."""
        return {name: sink.files for name, sink in self.sinks.items() if isinstance(sink, ToFiles)}


class StreamingJob(Part):
    """The whole document."""

    api_version: Literal["penstock/v1"]
    kind: Literal["StreamingJob"]
    metadata: Metadata
    spec: JobSpec

    def topics(self) -> dict[str, int | None]:
        """Topic -> partitions, sources first; None if the plan decides."""
        return {**self.read_topics(), **self.only_written_topics()}

    def read_topics(self) -> dict[str, int | None]:
        """Topic that the job reads -> requested partitions."""
        read = {topic: source.partitions for source in self.spec.kafka_sources.values() for topic in source.named}
        return {topic: asked or self._settings(topic).partitions for topic, asked in read.items()}

    def written_topics(self) -> dict[str, int]:
        """Topic that the job writes -> partitions: those of the sink, else of `topics`, else 1."""
        written: dict[str, int] = {}
        for sink in self.spec.kafka_sinks.values():
            own = sink.partitions if "partitions" in sink.model_fields_set else None
            written[sink.topic] = own or self._settings(sink.topic).partitions or sink.partitions
        return written

    def only_written_topics(self) -> dict[str, int]:
        """As `written_topics`, without feedbacks, whose partitions are those that they are read with."""
        read = self.read_topics()
        return {topic: partitions for topic, partitions in self.written_topics().items() if topic not in read}

    def _settings(self, topic: str) -> TopicSettings:
        return self.spec.topics.get(topic, TopicSettings())
