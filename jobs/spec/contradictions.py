"""Fields that are valid individually but contradict each other."""

from __future__ import annotations

import re

from penstock.jobs.document import Document, dotted
from penstock.jobs.errors import BadValue, Contradiction, MissingField
from penstock.jobs.spec.app_module import is_sql
from penstock.jobs.spec.checkpoint_settings import MOST_BATCHES, asked_batches
from penstock.jobs.spec.client_properties import faults_of_sink, faults_of_source
from penstock.jobs.spec.connections import connection_names, named_connections
from penstock.jobs.spec.errors import FeedbackUnusable
from penstock.jobs.spec.job import JobSpec, StreamingJob
from penstock.jobs.spec.sinks import FileSink, ToFunction
from penstock.jobs.spec.sources import FromSocket, KafkaSource
from penstock.jobs.spec.topics import TopicSettings
from penstock.sizing.errors import PenstockError
from penstock.sizing.spark_settings import MIN_BATCHES_TO_RETAIN_KEY

_RETAINED = MIN_BATCHES_TO_RETAIN_KEY
# Settings that a field of `topics` sets.
_FIELD_OF_CONFIG = {"retention.ms": "retention", "cleanup.policy": "cleanupPolicy"}


def contradictions(document: Document, job: StreamingJob) -> list[PenstockError]:
    """All contradictions of a document, each with its line."""
    return [
        *_neither_or_both(document, job),
        *_executor_without_memory(document, job),
        *_topics_that_disagree(document, job),
        *_feedbacks_that_do_not_come_back(document, job),
        *_patterns_that_fit_a_sink(document, job),
        *_sinks_that_disagree(document, job),
        *_topics_of_nobody(document, job),
        *_partitions_that_disagree(document, job),
        *_settings_that_have_a_field(document, job),
        *_properties_of_no_client(document, job),
        *_stages_that_disagree(document, job),
        *_fewer_copies_than_in_sync(document, job),
        *_inputs_without_a_topic(document, job),
        *_paths_that_leave_the_bucket(document, job),
        *_paths_in_one_another(document, job),
        *_paths_read_and_written(document, job),
        *_functions_of_no_module(document, job),
        *_deletes_without_a_key(document, job),
        *_bounded_runs_of_nothing(document, job),
        *_bounded_without_an_end(document, job),
        *_timeout_below_the_trigger(document, job),
        *_retention_without_micro_batches(document, job),
        *_rewinds_of_what_has_no_past(document, job),
        *_two_beginnings(document, job),
        *_offsets_of_no_savepoint(document, job),
        *_clocks_that_never_run(document, job),
        *_connections_that_disagree(document, job),
        *_local_connections_of_nobody(document, job),
    ]


def _neither_or_both(document: Document, job: StreamingJob) -> list[PenstockError]:
    spec = job.spec
    if spec.parallelism is None and spec.load is None:
        fault: PenstockError = MissingField(
            path="spec.parallelism", need="parallelism, or load, from which it is derived", fix="add one of them"
        )
        return [document.locate(fault, ("spec", "parallelism"))]
    if spec.parallelism is not None and spec.load is not None:
        need = f"either parallelism: {spec.parallelism}, or the parallelism derived from load"
        return [document.locate(Contradiction(given="parallelism and load", need=need, fix="remove one of them"), ("spec", "load"))]
    return []


def _executor_without_memory(document: Document, job: StreamingJob) -> list[PenstockError]:
    executor = job.spec.executor
    if job.spec.load is not None or executor.memory is not None or executor.heap is not None:
        return []
    need = "exactly one of memory and heap if load is not set; neither is given"
    return [document.locate(BadValue(need=need, fix='for example memory: "16g"'), ("spec", "executor"))]


def _topics_that_disagree(document: Document, job: StreamingJob) -> list[PenstockError]:
    faults: list[PenstockError] = []
    seen: dict[str, tuple[str, int | None]] = {}
    written = {sink.topic for sink in job.spec.kafka_sinks.values() if sink.feedback is None}
    for name, kafka, topic in _topics_read(job):
        first, partitions = seen.setdefault(topic, (name, kafka.partitions))
        if partitions != kafka.partitions:
            path = ("spec", "sources", name, "kafka", "partitions")
            need = f"the number of partitions that source {first} sets for topic {topic}: {partitions or 'not set'}"
            faults.append(document.locate(Contradiction(need=need, fix="use the same number in both"), path))
    for name, kafka, topic in _topics_read(job):
        if topic in written:
            path = ("spec", "sources", name, "kafka", "topic" if kafka.topic else "topics")
            need = "a topic that the job does not write to, unless all sinks that do declare it as a feedback with a limit of rounds"
            fault = Contradiction(need=need, fix="read or write another topic, or set feedback: {maxRounds: 10} on the sink")
            faults.append(document.locate(fault, path))
    return faults


def _feedbacks_that_do_not_come_back(document: Document, job: StreamingJob) -> list[PenstockError]:
    """A feedback whose records no source of the job can read as rows, or whose end a bounded run would have to wait for."""
    faults: list[PenstockError] = []
    readers = {topic: (name, kafka) for name, kafka, topic in _topics_read(job)}
    for name, sink in job.spec.kafka_sinks.items():
        if sink.feedback is None:
            continue
        path = ("spec", "sinks", name, "kafka", "feedback")
        if sink.topic not in readers:
            need = f"a source of the job that names topic {sink.topic}"
            faults.append(document.locate(FeedbackUnusable(need=need, fix="add the source, or remove feedback"), path))
        elif readers[sink.topic][1].value != "json":
            need = f"value: json of source {readers[sink.topic][0]}, as the sink writes the rows"
            faults.append(document.locate(FeedbackUnusable(need=need, fix="value: json"), path))
        if job.spec.bounded:
            need = "a job without bounded: true: its end is fixed at the start, and what comes back is behind it"
            faults.append(document.locate(FeedbackUnusable(need=need, fix="remove bounded: true"), path))
    return faults


def _patterns_that_fit_a_sink(document: Document, job: StreamingJob) -> list[PenstockError]:
    """A job that reads its own output feeds itself."""
    return [
        document.locate(
            Contradiction(
                need=f"a pattern that does not match {topic}, which the job writes to",
                fix="narrow the pattern, or write another topic",
            ),
            ("spec", "sources", name, "kafka", "pattern"),
        )
        for name, source in job.spec.kafka_sources.items()
        for topic in job.written_topics()
        if source.pattern and re.fullmatch(source.pattern, topic)
    ]


def _topics_read(job: StreamingJob) -> list[tuple[str, KafkaSource, str]]:
    """Source, its Kafka settings, and each topic that it names."""
    return [(name, source, topic) for name, source in job.spec.kafka_sources.items() for topic in source.named]


def _sinks_that_disagree(document: Document, job: StreamingJob) -> list[PenstockError]:
    faults: list[PenstockError] = []
    seen: dict[str, tuple[str, int]] = {}
    for name, sink in job.spec.kafka_sinks.items():
        first, partitions = seen.setdefault(sink.topic, (name, sink.partitions))
        if partitions != sink.partitions:
            need = f"the number of partitions that sink {first} sets for topic {sink.topic}: {partitions}"
            fault = Contradiction(need=need, fix="use the same number in both")
            faults.append(document.locate(fault, ("spec", "sinks", name, "kafka", "partitions")))
    return faults


def _topics_of_nobody(document: Document, job: StreamingJob) -> list[PenstockError]:
    known = job.topics()
    need = f"a topic that the job reads or writes: {', '.join(known) or 'it has none'}"
    fault = Contradiction(need=need, fix="correct the name, or remove it")
    return [document.locate(fault, ("spec", "topics", topic)) for topic in job.spec.topics if topic not in known]


def _partitions_that_disagree(document: Document, job: StreamingJob) -> list[PenstockError]:
    faults: list[PenstockError] = []
    read = [(f"source {name}", topic, kafka.partitions) for name, kafka, topic in _topics_read(job)]
    written = [
        (f"sink {name}", sink.topic, sink.partitions)
        for name, sink in job.spec.kafka_sinks.items()
        if "partitions" in sink.model_fields_set
    ]
    for whose, topic, given in [*read, *written]:
        asked = job.spec.topics.get(topic, TopicSettings()).partitions
        if asked is not None and given is not None and asked != given:
            fault = Contradiction(need=f"the number of partitions that {whose} sets for the topic: {given}", fix="set the number once")
            faults.append(document.locate(fault, ("spec", "topics", topic, "partitions")))
    return faults


def _settings_that_have_a_field(document: Document, job: StreamingJob) -> list[PenstockError]:
    return [
        document.locate(
            Contradiction(need=f"the field {field} instead", fix=f"set {field}: ..., next to config"),
            ("spec", "topics", topic, "config", name),
        )
        for topic, settings in job.spec.topics.items()
        for name, field in _FIELD_OF_CONFIG.items()
        if name in settings.config
    ]


def _properties_of_no_client(document: Document, job: StreamingJob) -> list[PenstockError]:
    read = {("sources", name): faults_of_source(kafka.properties) for name, kafka in job.spec.kafka_sources.items()}
    written = {
        ("sinks", name): faults_of_sink(kafka.properties, exactly_once=kafka.guarantee == "exactly-once")
        for name, kafka in job.spec.kafka_sinks.items()
    }
    return [
        document.locate(fault, ("spec", part, name, "kafka", "properties", key))
        for (part, name), faults in {**read, **written}.items()
        for key, fault in faults
    ]


def _stages_that_disagree(document: Document, job: StreamingJob) -> list[PenstockError]:
    """A setting of sparkConf that contradicts a field of `stages`."""
    spec, faults = job.spec, []
    key = "spark.sql.shuffle.partitions"
    if spec.stages.stateful is not None and str(spec.spark_conf.get(key, spec.stages.stateful)) != str(spec.stages.stateful):
        fault = Contradiction(need=f"stages.stateful: {spec.stages.stateful}, which sets the same", fix="remove one of them")
        faults.append(document.locate(fault, ("spec", "sparkConf", key)))
    if spec.stages.source is None:
        return list(faults)
    for name, source in spec.kafka_sources.items():
        if source.min_partitions not in (None, spec.stages.source):
            fault = Contradiction(
                need=f"stages.source: {spec.stages.source}, which sets the same for all sources", fix="remove one of them"
            )
            faults.append(document.locate(fault, ("spec", "sources", name, "kafka", "minPartitions")))
    return list(faults)


def _fewer_copies_than_in_sync(document: Document, job: StreamingJob) -> list[PenstockError]:
    """No record could be written to a topic with fewer replicas than min.insync.replicas."""
    faults: list[PenstockError] = []
    for topic, settings in job.spec.topics.items():
        in_sync = str(settings.config.get("min.insync.replicas", ""))
        if settings.replication is not None and in_sync.isdigit() and int(in_sync) > settings.replication:
            need = f"at most replication: {settings.replication}; otherwise no write succeeds"
            fault = Contradiction(need=need, fix=f"min.insync.replicas: {max(1, settings.replication - 1)}")
            faults.append(document.locate(fault, ("spec", "topics", topic, "config", "min.insync.replicas")))
    return faults


def _inputs_without_a_topic(document: Document, job: StreamingJob) -> list[PenstockError]:
    files = [source.path for source in job.spec.file_sources.values()]
    patterns = [source.pattern for source in job.spec.kafka_sources.values() if source.pattern]
    topics = [*(topic for _, _, topic in _topics_read(job)), *files]
    need = f"a topic or file path that the job reads: {', '.join(topics) or 'it reads none'}"
    return [
        document.locate(
            Contradiction(path=f"spec.local.input.{topic}", need=need, fix="use the topic's name, not the source's"),
            ("spec", "local", "input", topic),
        )
        for topic in job.spec.local.input
        if topic not in topics and not any(re.fullmatch(pattern, topic) for pattern in patterns)
    ]


def _paths_that_leave_the_bucket(document: Document, job: StreamingJob) -> list[PenstockError]:
    faults: list[PenstockError] = []
    for name, sink in job.spec.file_sinks.items():
        if any(re.fullmatch(r"\.{1,2}", part) for part in sink.path.split("/")):
            fault = Contradiction(need="a path below the output bucket, without . and ..", fix="use the resolved path")
            faults.append(document.locate(fault, ("spec", "sinks", name, "files", "path")))
    return faults


def _paths_in_one_another(document: Document, job: StreamingJob) -> list[PenstockError]:
    """A reader of one sink would read the files of the other, and both would use the same file names."""
    faults: list[PenstockError] = []
    taken: list[tuple[str, FileSink]] = []
    for name, sink in job.spec.file_sinks.items():
        for other, files in taken:
            if sink.bucket == files.bucket and _lie_in_each_other(sink.path, files.path):
                need = f"a separate folder; sink {other} writes to {files.path}"
                fault = Contradiction(given=sink.path, need=need, fix="use another path")
                faults.append(document.locate(fault, ("spec", "sinks", name, "files", "path")))
        taken.append((name, sink))
    return faults


def _paths_read_and_written(document: Document, job: StreamingJob) -> list[PenstockError]:
    """A source of files includes subfolders. Paths of two buckets may be equal."""
    return [
        document.locate(
            Contradiction(need=f"a folder that the job does not write; sink {name} writes to {sink.path}", fix="use another path"),
            ("spec", "sources", read, "files", "path"),
        )
        for read, source in job.spec.file_sources.items()
        for name, sink in job.spec.file_sinks.items()
        if source.bucket == sink.bucket and _lie_in_each_other(source.path, sink.path)
    ]


def _lie_in_each_other(path: str, other: str) -> bool:
    return f"{path}/".startswith(f"{other}/") or f"{other}/".startswith(f"{path}/")


def _functions_of_no_module(document: Document, job: StreamingJob) -> list[PenstockError]:
    need = f"a Python app that defines the function; {job.spec.app} is an SQL app"
    fault = Contradiction(need=need, fix="use another kind of sink, or write the app in Python")
    names = [name for name, sink in job.spec.sinks.items() if isinstance(sink, ToFunction) and is_sql(job.spec.app)]
    return [document.locate(fault, ("spec", "sinks", name, "function")) for name in names]


def _deletes_without_a_key(document: Document, job: StreamingJob) -> list[PenstockError]:
    """A tombstone without a key deletes nothing."""
    return [
        document.locate(
            Contradiction(need="a key; tombstones delete by key", fix="key: [...]"), ("spec", "sinks", name, "kafka", "deletes")
        )
        for name, sink in job.spec.kafka_sinks.items()
        if sink.deletes and not sink.key
    ]


def _bounded_runs_of_nothing(document: Document, job: StreamingJob) -> list[PenstockError]:
    """A bounded run ends at the records that exist when it starts, so one that starts at the latest offset reads nothing."""
    if job.spec.trigger != "availableNow":
        return []
    need = "earliest or committed-or-earliest; trigger: availableNow reads up to the latest offset and stops"
    return [
        document.locate(Contradiction(need=need, fix="startingOffsets: earliest"), ("spec", "sources", name, "kafka", "startingOffsets"))
        for name, source in job.spec.kafka_sources.items()
        if source.starting_offsets.endswith("latest")
    ]


def _timeout_below_the_trigger(document: Document, job: StreamingJob) -> list[PenstockError]:
    """A micro-batch may take as long as its trigger; Flink's checkpoints, too, may take as long as their interval."""
    asked, trigger = job.spec.progress_timeout, job.spec.trigger
    if asked is None or trigger == "availableNow" or asked >= trigger:
        return []
    fault = Contradiction(need=f"at least the trigger, {trigger / 1000:g} s", fix="raise it, or remove it for the default")
    return [document.locate(fault, ("spec", "progressTimeout"))]


def need_of_a_rewind(spec: JobSpec) -> str | None:
    """What a job needs to be rewound to a time; None if it has it.

    A topic alone can be read again from a time; files would all be read again, and a socket sends what it sends.
    """
    others = [name for name in spec.sources if name not in spec.kafka_sources]
    if others:
        return f"sources that read topics alone; {others[0]} does not"
    return None if spec.sources else "a source that reads a topic"


def _rewinds_of_what_has_no_past(document: Document, job: StreamingJob) -> list[PenstockError]:
    need = need_of_a_rewind(job.spec)
    if job.spec.rewind_to is None or need is None:
        return []
    fix = "remove it; upgradeMode: stateless with another restartNonce reads everything again"
    return [document.locate(Contradiction(need=need, fix=fix), ("spec", "rewindTo"))]


def _retention_without_micro_batches(document: Document, job: StreamingJob) -> list[PenstockError]:
    """A time is a number of micro-batches by the trigger's interval."""
    spec, at = job.spec, ("spec", "checkpoint", "retention")
    if spec.checkpoint.retention is None:
        return []
    batches = asked_batches(spec)
    if batches is None:
        fault = Contradiction(need="a trigger with an interval", fix=f"remove it, or set {_RETAINED} in sparkConf")
    elif _RETAINED in spec.spark_conf:
        fault = Contradiction(need=f"no {_RETAINED} in sparkConf, which sets the same", fix="remove one of them")
    elif batches > MOST_BATCHES:
        need = f"at most {MOST_BATCHES:,} micro-batches; with the trigger these are {batches:,}"
        fault = Contradiction(need=need, fix="a shorter retention, or a longer trigger")
    else:
        return []
    return [document.locate(fault, at)]


def _bounded_without_an_end(document: Document, job: StreamingJob) -> list[PenstockError]:
    """`bounded` needs an end that is known when the job starts."""
    if not job.spec.bounded:
        return []
    faults: list[PenstockError] = []
    if job.spec.trigger != "availableNow":
        need = "trigger: availableNow; with an interval the job has no end"
        fault = Contradiction(need=need, fix="set trigger: availableNow, or remove bounded")
        faults.append(document.locate(fault, ("spec", "bounded")))
    need = "topics or files, whose end is known when the job starts; a socket has none"
    for name, source in job.spec.sources.items():
        if isinstance(source, FromSocket):
            fault = Contradiction(need=need, fix="remove bounded, or read from Kafka or files")
            faults.append(document.locate(fault, ("spec", "sources", name, "socket")))
    return faults


def _connections_that_disagree(document: Document, job: StreamingJob) -> list[PenstockError]:
    """A duplicate name, or a local server of another kind than the spec uses."""
    faults: list[PenstockError] = []
    first = {connection.name: connection for connection in reversed(named_connections(job.spec))}
    for connection in named_connections(job.spec):
        known = first[connection.name]
        if connection.kind != known.kind:
            need = f"a connection of a single kind; {dotted(known.place)} uses it as {known.kind}, this as {connection.kind}"
            faults.append(document.locate(Contradiction(need=need, fix="use another connection"), connection.place))
    for name, local in job.spec.local.connections.items():
        if name in first and first[name].kind != local.kind:
            need = f"{first[name].kind}, as {dotted(first[name].place)} uses it"
            fault = Contradiction(given=local.kind, need=need, fix=f"{first[name].kind}: {local.function}")
            faults.append(document.locate(fault, ("spec", "local", "connections", name)))
    return faults


def _local_connections_of_nobody(document: Document, job: StreamingJob) -> list[PenstockError]:
    known = connection_names(job.spec)
    need = f"a connection that the job uses: {', '.join(known) or 'it uses none'}"
    return [
        document.locate(
            Contradiction(given=name, need=need, fix=f"connections: {{{name}: {local.kind}}} below spec, if the app itself uses it"),
            ("spec", "local", "connections", name),
        )
        for name, local in job.spec.local.connections.items()
        if name not in known
    ]


def _two_beginnings(document: Document, job: StreamingJob) -> list[PenstockError]:
    if job.spec.initial_savepoint_path is None or job.spec.rewind_to is None:
        return []
    need, fix = (
        "initialSavepointPath or rewindTo: a savepoint says itself from where its job reads on",
        "remove what is done, or one of them",
    )
    return [document.locate(Contradiction(given="both", need=need, fix=fix), ("spec", "initialSavepointPath"))]


def _offsets_of_no_savepoint(document: Document, job: StreamingJob) -> list[PenstockError]:
    if job.spec.initial_offsets is None:
        return []
    path = ("spec", "initialOffsets")
    if job.spec.initial_savepoint_path is None:
        need = "initialSavepointPath, from which the job starts and whose offsets these replace"
        return [document.locate(Contradiction(need=need, fix="add it; without a savepoint, startingOffsets of a source says it"), path)]
    if job.spec.bounded:
        need, fix = "a job whose input does not end: a savepoint of a bounded run has its ends, too", "remove initialOffsets, or bounded"
        return [document.locate(Contradiction(given="bounded", need=need, fix=fix), path)]
    return []


def _clocks_that_never_run(document: Document, job: StreamingJob) -> list[PenstockError]:
    """The clock takes over once all inputs are idle, which an input without idleness never is."""
    if job.spec.when_idle != "clock":
        return []
    need = "idleness for every source with time; with whenIdle: clock, the clock takes over once all of them are idle"
    return [
        document.locate(Contradiction(need=need, fix="idleness: 2m"), ("spec", "sources", name, "time"))
        for name, source in job.spec.sources.items()
        if source.time and source.time.kind != "processing" and source.time.idleness is None
    ]
