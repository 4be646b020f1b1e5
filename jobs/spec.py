"""The job spec: the one document that a team writes.

Strict and frozen: an unknown field, a wrong type or a wrong quantity is an error with its line, and all of a document's faults come at
once. No Spark here: `penstock size` reads a spec in well under a second. Fields are camelCase in YAML and snake_case here; memory is in
MiB, sizes are in bytes, CPU is in millicores and durations are in milliseconds.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from zoneinfo import available_timezones

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic.alias_generators import to_camel

from jobs.document import Document, read
from jobs.errors import BadValue, Contradiction, MissingField
from sizing.errors import PenstockError, raise_all
from sizing.units import CPU_PATTERN, DURATION_PATTERN, MEMORY_PATTERN, cpu_millicores, duration_ms, memory_mib, size_bytes

# RFC 1123 labels are at most 63 characters; the driver's StatefulSet adds "-driver-0" and Spark's executors "-exec-<n>".
NAME_PATTERN = r"^[a-z]([a-z0-9-]{0,43}[a-z0-9])?$"
# Kafka: org.apache.kafka.common.internals.Topic, legal characters and at most 249 of them.
TOPIC_PATTERN = r"^[a-zA-Z0-9._-]{1,249}$"
PREFIX_PATTERN = r"^[A-Za-z0-9._-]*$"
PATH_PATTERN = r"^[A-Za-z0-9._=-]+(/[A-Za-z0-9._=-]+)*$"
APP_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$"
# Beside the spec or below its folder.
PROFILE_PATTERN = r"^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*\.(json|yaml|yml)$"
REFERENCE_PATTERN = r"^([A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*|.+\.jsonl)$"


def _text(parse: Any, pattern: str, description: str, *, numbers: bool = False) -> Any:
    """A quantity's validator and what editors are shown of it."""
    text: dict[str, Any] = {"type": "string", "pattern": pattern}
    schema = {"anyOf": [text, {"type": "number", "exclusiveMinimum": 0}]} if numbers else text
    return (BeforeValidator(parse), WithJsonSchema({**schema, "description": description}))


MemoryMib = Annotated[int, *_text(memory_mib, MEMORY_PATTERN, "memory in whole MiB: 2048m, 16g, 1.5Gi")]
SizeBytes = Annotated[int, *_text(size_bytes, MEMORY_PATTERN, "a size: 64k, 128Mi, 1g")]
Millicores = Annotated[int, *_text(cpu_millicores, CPU_PATTERN, "CPU: 4, 0.5, 500m", numbers=True)]
DurationMs = Annotated[int, *_text(duration_ms, DURATION_PATTERN, "a duration: 500ms, 10s, 2m, 1h, 7d")]
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
Topic = Annotated[str, Field(pattern=TOPIC_PATTERN)]


def _trigger(value: object) -> object:
    return value if value == "availableNow" else duration_ms(value)


Trigger = Annotated[
    int | Literal["availableNow"],
    BeforeValidator(_trigger),
    WithJsonSchema({"anyOf": [{"const": "availableNow"}, {"type": "string", "pattern": DURATION_PATTERN}]}),
]


def _zone(value: str) -> str:
    if value not in available_timezones():
        raise ValueError("a zone of the tz database, as Asia/Kolkata")
    return value


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=False)


class Metadata(_Part):
    """Names the job; every resource's name is built from it."""

    name: Name


class Executor(_Part):
    """What one executor has.

    Args:
        slots: task slots, as Flink counts them (``spark.executor.cores``); by default the whole cores, at least 1.
        cores: CPU request of the pod in millicores; by default one core a slot.
        memory: memory of the pod in MiB, overhead included, as Flink's process size; with a load neither this nor `heap` has to be given.
        heap: ``spark.executor.memory`` in MiB instead; the pod is then as large as Spark makes it.
    """

    slots: Annotated[int, Field(ge=1, le=1024)] | None = None
    cores: Millicores | None = None
    memory: MemoryMib | None = None
    heap: MemoryMib | None = None

    @model_validator(mode="after")
    def _one_memory(self) -> Self:
        # Neither is for the spec as a whole to judge: a load says what an executor needs.
        if self.memory is not None and self.heap is not None:
            _exactly_one(memory=self.memory, heap=self.heap)
        return self


class Driver(_Part):
    """What the driver has: CPU request in millicores, and memory (the pod's) or heap in MiB."""

    cores: Millicores = 1000
    memory: MemoryMib | None = None
    heap: MemoryMib | None = None

    @model_validator(mode="after")
    def _one_memory(self) -> Self:
        if self.memory is not None or self.heap is not None:
            _exactly_one(memory=self.memory, heap=self.heap)
        return self


class KafkaSource(_Part):
    """A Kafka topic to read.

    Args:
        topic: the topic's name; brokers come from the environment.
        partitions: of the topic; by default the plan's parallelism.
        starting_offsets: where a job without a checkpoint starts. ``committed-or-...`` takes the consumer group's offsets where there are
        any.
        value: how a record's value is read.
        max_offsets_per_trigger: records a micro-batch at most; None takes all there is.
    """

    topic: Topic
    partitions: Annotated[int, Field(ge=1, le=10_000)] | None = None
    starting_offsets: Literal["committed-or-latest", "committed-or-earliest", "earliest", "latest"] = "committed-or-latest"
    value: Literal["json"] = "json"
    max_offsets_per_trigger: Annotated[int, Field(ge=1)] | None = None


class EventTime(_Part):
    """How event time is read and how far rows may be out of order.

    Args:
        field: field of the value with an ISO-8601 timestamp with offset.
        out_of_orderness: the watermark's bound in ms.
        idleness: a partition without new rows for this long holds nothing back, in ms; None waits for ever.
    """

    field: str
    out_of_orderness: DurationMs
    idleness: DurationMs | None = None


class Source(_Part):
    """One input of the job."""

    kafka: KafkaSource
    time: EventTime | None = None


class Roll(_Part):
    """When a part file is closed: at a size in bytes, at an age in ms, or after a time without rows in ms.

    A part file never outlives its micro-batch, so the age and the idle time are kept where the trigger is no longer than they are.
    """

    size: SizeBytes = 128 * 1024 * 1024
    interval: DurationMs = 300_000
    inactivity: DurationMs = 60_000


class FileSink(_Part):
    """Files on S3.

    Args:
        path: below the environment's output bucket.
        format: JSON lines.
        prefix: of each part file's name.
        bucket_by: ``event-date`` puts a row below ``dt=yyyy-MM-dd`` of its event time; ``none`` puts all rows together.
        zone: the zone of that date.
        roll: when a part file is closed.
    """

    path: Annotated[str, Field(pattern=PATH_PATTERN)]
    format: Literal["json"] = "json"
    prefix: Annotated[str, Field(pattern=PREFIX_PATTERN)] = "part-"
    bucket_by: Literal["event-date", "none"] = "event-date"
    zone: Annotated[str, AfterValidator(_zone)] = "UTC"
    roll: Roll = Roll()


class KafkaSink(_Part):
    """A Kafka topic to write; partitions are those of the topic, 1 by default."""

    topic: Topic
    partitions: Annotated[int, Field(ge=1, le=10_000)] = 1


class Sink(_Part):
    """One output of the job: files or a topic."""

    files: FileSink | None = None
    kafka: KafkaSink | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        _exactly_one(files=self.files, kafka=self.kafka)
        return self


class State(_Part):
    """Where the state of joins and windows is kept.

    Args:
        backend: ``memory`` (on the heap) or ``rocksdb`` (in native memory and on disk).
        incremental: upload each batch's changes instead of whole snapshots (RocksDB's changelog).
    """

    backend: Literal["memory", "rocksdb"] = "rocksdb"
    incremental: bool = True


class LoadedState(_Part):
    """What joins and aggregations keep at a time.

    Args:
        keys: at a time, of all of them together.
        bytes_per_key: of state for one key, the key included.
        operators: ``join`` for a stream-stream join, ``other`` for the rest; by default the joins that the app's code calls.
    """

    keys: Annotated[int, Field(ge=1, le=10**13)]
    bytes_per_key: Annotated[int, Field(ge=1, le=10**9)]
    operators: list[Literal["join", "other"]] | None = None


class Load(_Part):
    """What the job has to process; parallelism, partitions and memory follow from it. Its sources are counted together.

    Args:
        events_per_second: on average over a day.
        event_bytes: of one event as Kafka stores it.
        events_per_slot: a second that one slot processes in a steady state; this or `profile`.
        profile: a JSON or YAML file beside the spec with measured throughput; this or `events_per_slot`.
        peak_factor: the peak's rate over the average.
        utilisation: share of the throughput that the peak may take.
        restart: for how long nothing is processed when the job starts again, in ms.
        catch_up: within which the backlog of a restart has to be gone, in ms.
        backlog: events that wait already.
        retention: how long Kafka keeps the events, in ms; by default the environment's.
        fan_out: consumer groups that read each event, this job's among them.
        replication: copies that Kafka keeps; by default the environment's.
        state: what joins and aggregations keep.
        batch_overhead: what a micro-batch takes beside its rows, in ms.
    """

    events_per_second: Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)]
    event_bytes: Annotated[int, Field(ge=1, le=104_857_600)]
    events_per_slot: Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)] | None = None
    profile: Annotated[str, Field(pattern=PROFILE_PATTERN)] | None = None
    peak_factor: Annotated[float, Field(ge=1, le=1000, allow_inf_nan=False)] = 1.0
    utilisation: Annotated[float, Field(ge=0.01, le=1)] = 0.7
    restart: DurationMs = 300_000
    catch_up: Annotated[DurationMs, Field(ge=1000)] = 1_800_000
    backlog: Annotated[int, Field(ge=0, le=10**15)] = 0
    retention: DurationMs | None = None
    fan_out: Annotated[float, Field(ge=1, le=1000, allow_inf_nan=False)] = 1.0
    replication: Annotated[int, Field(ge=1, le=15)] | None = None
    state: LoadedState | None = None
    batch_overhead: Annotated[DurationMs, Field(le=3_600_000)] = 500

    @model_validator(mode="after")
    def _one_throughput(self) -> Self:
        _exactly_one(eventsPerSlot=self.events_per_slot, profile=self.profile)
        return self


class Local(_Part):
    """What ``penstock up`` feeds and what must come out.

    Args:
        input: topic -> ``module:function`` that yields records, or a ``.jsonl`` file beside the spec with one value a line.
        expect: ``module:function`` that computes from the recorded input what must come out.
    """

    input: dict[str, Annotated[str, Field(pattern=REFERENCE_PATTERN)]] = Field(default_factory=dict)
    expect: Annotated[str, Field(pattern=REFERENCE_PATTERN)] | None = None


class JobSpec(_Part):
    """Everything below ``spec``; exactly one of parallelism and load."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["parallelism"]}, {"required": ["load"]}]})

    app: Annotated[str, Field(pattern=APP_PATTERN)]
    parallelism: Annotated[int, Field(ge=1, le=32_768)] | None = None
    load: Load | None = None
    upgrade_mode: Literal["last-state", "savepoint", "stateless"] = "last-state"
    executor: Executor
    driver: Driver = Driver()
    trigger: Trigger = 10_000
    sources: dict[Name, Source] = Field(default_factory=dict)
    sinks: dict[Name, Sink] = Field(default_factory=dict)
    state: State = State()
    spark_conf: dict[str, str | int | float | bool] = Field(default_factory=dict)
    local: Local = Local()


class StreamingJob(_Part):
    """The whole document."""

    api_version: Literal["penstock/v1"]
    kind: Literal["StreamingJob"]
    metadata: Metadata
    spec: JobSpec

    def topics(self) -> dict[str, int | None]:
        """Topic -> partitions, sources first; None where the spec leaves them to the plan."""
        read_topics = {source.kafka.topic: source.kafka.partitions for source in self.spec.sources.values()}
        written = {sink.kafka.topic: sink.kafka.partitions for sink in self.spec.sinks.values() if sink.kafka}
        return {**written, **read_topics}


class SpecFile(BaseModel):
    """A spec with the document that it was read from, so that later findings can name a line."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    path: Path
    document: Document
    job: StreamingJob


def load(path: Path) -> SpecFile:
    """Reads a job spec.

    Raises:
        PenstockError: SPEC-001 to SPEC-008 and SPEC-011; several come as `Faults`.
    """
    document = read(path)
    job = document.parse(StreamingJob)
    raise_all(_contradictions(document, job))
    return SpecFile(path=path, document=document, job=job)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the document, for editors."""
    schema = StreamingJob.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Penstock streaming job", **schema}


def _exactly_one(**values: object) -> None:
    given = [name for name, value in values.items() if value is not None]
    if len(given) != 1:
        raise ValueError(f"exactly one of {' and '.join(values)}; {' and '.join(given) or 'neither'} is given")


def _contradictions(document: Document, job: StreamingJob) -> list[PenstockError]:
    return [
        *_neither_or_both(document, job),
        *_executor_without_memory(document, job),
        *_topics_that_disagree(document, job),
        *_sinks_that_disagree(document, job),
        *_inputs_without_a_topic(document, job),
        *_paths_that_leave_the_bucket(document, job),
        *_bounded_runs_of_nothing(document, job),
    ]


def _neither_or_both(document: Document, job: StreamingJob) -> list[PenstockError]:
    spec = job.spec
    if spec.parallelism is None and spec.load is None:
        fault: PenstockError = MissingField(
            path="spec.parallelism", need="parallelism, or load, from which it follows", fix="add one of the two"
        )
        return [document.locate(fault, ("spec", "parallelism"))]
    if spec.parallelism is not None and spec.load is not None:
        need = f"one of the two: parallelism: {spec.parallelism}, or the one that follows from the load"
        return [document.locate(Contradiction(given="parallelism and load", need=need, fix="take one of them out"), ("spec", "load"))]
    return []


def _executor_without_memory(document: Document, job: StreamingJob) -> list[PenstockError]:
    executor = job.spec.executor
    if job.spec.load is not None or executor.memory is not None or executor.heap is not None:
        return []
    need = "exactly one of memory and heap, where no load says what an executor needs; neither is given"
    return [document.locate(BadValue(need=need, fix='for example memory: "16g"'), ("spec", "executor"))]


def _topics_that_disagree(document: Document, job: StreamingJob) -> list[PenstockError]:
    faults: list[PenstockError] = []
    seen: dict[str, tuple[str, int | None]] = {}
    for name, source in job.spec.sources.items():
        first, partitions = seen.setdefault(source.kafka.topic, (name, source.kafka.partitions))
        if partitions != source.kafka.partitions:
            path = ("spec", "sources", name, "kafka", "partitions")
            need = f"as many partitions as source {first} gives to topic {source.kafka.topic}: {partitions or 'none given'}"
            faults.append(document.locate(Contradiction(need=need, fix="give the same number twice"), path))
    written = {sink.kafka.topic for sink in job.spec.sinks.values() if sink.kafka}
    for name, source in job.spec.sources.items():
        if source.kafka.topic in written:
            path = ("spec", "sources", name, "kafka", "topic")
            fault = Contradiction(need="a topic that the job does not write itself", fix="read or write another topic")
            faults.append(document.locate(fault, path))
    return faults


def _sinks_that_disagree(document: Document, job: StreamingJob) -> list[PenstockError]:
    faults: list[PenstockError] = []
    seen: dict[str, tuple[str, int]] = {}
    for name, sink in job.spec.sinks.items():
        if sink.kafka is None:
            continue
        first, partitions = seen.setdefault(sink.kafka.topic, (name, sink.kafka.partitions))
        if partitions != sink.kafka.partitions:
            need = f"as many partitions as sink {first} gives to topic {sink.kafka.topic}: {partitions}"
            fault = Contradiction(need=need, fix="give the same number twice")
            faults.append(document.locate(fault, ("spec", "sinks", name, "kafka", "partitions")))
    return faults


def _inputs_without_a_topic(document: Document, job: StreamingJob) -> list[PenstockError]:
    topics = [source.kafka.topic for source in job.spec.sources.values()]
    need = f"a topic that the job reads: {', '.join(topics) or 'it reads none'}"
    return [
        document.locate(
            Contradiction(path=f"spec.local.input.{topic}", need=need, fix="name the topic, not the source"),
            ("spec", "local", "input", topic),
        )
        for topic in job.spec.local.input
        if topic not in topics
    ]


def _paths_that_leave_the_bucket(document: Document, job: StreamingJob) -> list[PenstockError]:
    faults: list[PenstockError] = []
    for name, sink in job.spec.sinks.items():
        if sink.files and any(re.fullmatch(r"\.{1,2}", part) for part in sink.files.path.split("/")):
            fault = Contradiction(need="a path below the output bucket, without . and ..", fix="write it out")
            faults.append(document.locate(fault, ("spec", "sinks", name, "files", "path")))
    return faults


def _bounded_runs_of_nothing(document: Document, job: StreamingJob) -> list[PenstockError]:
    """A bounded run ends at what is there when it begins, so one that begins at the latest offset reads nothing."""
    if job.spec.trigger != "availableNow":
        return []
    need = "earliest or committed-or-earliest, for trigger: availableNow reads up to the latest offset and ends"
    return [
        document.locate(Contradiction(need=need, fix="startingOffsets: earliest"), ("spec", "sources", name, "kafka", "startingOffsets"))
        for name, source in job.spec.sources.items()
        if source.kafka.starting_offsets.endswith("latest")
    ]
