"""What a changed field of a spec means for a job that runs.

Source: Spark's Structured Streaming guide, "Recovery Semantics after Changes in a Streaming Query"; for the rest, Penstock's documents.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from penstock.jobs.spec.changes import ChangedField, Path
from penstock.jobs.spec.job import StreamingJob

# ``nothing``: no other generation begins; the driver, whose file has changed, starts again as the same one. ``restart``: the next
# generation goes on, and the state has no part in it. ``restart with state``: what is kept so far is gone on with under the new value.
# ``state must be reset``: it takes effect with an empty checkpoint only. ``refused``: the driver would not start.
Effect = Literal["nothing", "restart", "restart with state", "state must be reset", "refused"]


class FieldEffect(NamedTuple):
    """What a change of a field means.

    Args:
        effect: the least that it takes.
        why: for people, in a sentence's form.
    """

    effect: Effect
    why: str


_SUBSCRIPTION = FieldEffect("state must be reset", "the checkpoint's offsets are those of the topics that the source began with (JOB-105)")
_READS_ON = FieldEffect("restart with state", "the job starts from the savepoint and reads on at initialOffsets")
_MORE_TOPICS = FieldEffect("restart with state", "the topics that are added are read from their beginning, whatever startingOffsets says")
_MORE_SOURCES = FieldEffect(
    "restart with state", "if another output reads it; a query that goes on must have those it began with: penstock upgrade check"
)
_FOLDER = FieldEffect("state must be reset", "the checkpoint lists the files of the folder that the source began with")
_DECODED = FieldEffect("restart", "decides how records are read that are yet to come")
_TIME = FieldEffect("restart with state", "the watermark and open windows go on, and rows that are yet to come are timed in the new way")
_RATE = FieldEffect("restart", "changes how much a micro-batch reads, and not what")
_SLOTS = FieldEffect(
    "restart",
    "more or fewer tasks at a time; the state keeps the partitions that its checkpoint began with: upgradeMode: savepoint repartitions it",
)
_PARTITIONS = FieldEffect(
    "state must be reset",
    "fixed for the lifetime of a checkpoint, with which the job runs on with the old number: upgradeMode: savepoint repartitions the state",
)
_REPARTITIONED = FieldEffect(
    "restart with state", "with upgradeMode: savepoint the state gets as many shuffle partitions: it is repartitioned in a new checkpoint"
)
_PLANNED = FieldEffect("restart", "the plan follows; nothing else depends on it")
_SIZE = FieldEffect("restart", "pods of another size")
_PLACED = FieldEffect("restart", "the executors start again, on nodes as the plan has them; the state moves with them")
_LOOKUP = FieldEffect("restart", "rows that are yet to come are looked up in the new way")
_WRITTEN = FieldEffect("restart", "rows from the next micro-batch on are written in the new way; what is written stays as it is")
_TOPIC = FieldEffect("restart", "penstock topics apply changes the topic; the job does not")
_LIMIT = FieldEffect("restart", "applies from the next start on")
_LOCAL = FieldEffect("nothing", "only penstock up reads it")
_SOCKET = FieldEffect("refused", "a socket can't send again what it has sent (JOB-021); set upgradeMode: stateless")
_APP = FieldEffect("restart with state", "the app's operators must keep what the checkpoint has: penstock upgrade check")
_PACKAGES = FieldEffect("restart", "the image must have the packages of the lock")

_SOURCE = "spec.sources.*"
_EFFECTS: dict[str, FieldEffect] = {
    "apiVersion": FieldEffect("nothing", "has one value"),
    "kind": FieldEffect("nothing", "has one value"),
    "metadata.name": FieldEffect("state must be reset", "another name is another job, with its own namespace, role and checkpoint"),
    "spec.app": _APP,
    "spec.packages.python": _PACKAGES,
    "spec.packages.jars": _PACKAGES,
    "spec.parallelism": _SLOTS,
    "spec.stages.source": _RATE,
    "spec.stages.stateless": FieldEffect("restart", "another number of tasks before the first stateful operator"),
    "spec.stages.stateful": _PARTITIONS,
    "spec.load": _SLOTS,
    **dict.fromkeys(
        (
            "spec.load.eventsPerSecond",
            "spec.load.eventBytes",
            "spec.load.eventsPerSlot",
            "spec.load.profile",
            "spec.load.peakFactor",
            "spec.load.utilisation",
            "spec.load.restart",
            "spec.load.catchUp",
            "spec.load.backlog",
        ),
        _SLOTS,
    ),
    **dict.fromkeys(
        (
            "spec.load.retention",
            "spec.load.fanOut",
            "spec.load.replication",
            "spec.load.state",
            "spec.load.state.keys",
            "spec.load.state.bytesPerKey",
            "spec.load.state.operators",
            "spec.load.batchOverhead",
        ),
        _PLANNED,
    ),
    "spec.upgradeMode": FieldEffect("nothing", "says what the job goes on with at the next change, and whether a savepoint is taken first"),
    "spec.restartNonce": FieldEffect("restart", "asks for it"),
    "spec.rewindTo": FieldEffect(
        "state must be reset", "the job reads its topics again from the time, with an empty checkpoint, which it begins by itself"
    ),
    "spec.initialSavepointPath": FieldEffect(
        "restart with state", "with another restartNonce the job starts from the savepoint, with the state that it has"
    ),
    "spec.initialOffsets": FieldEffect(
        "restart", "says where the job reads on when it starts from the savepoint; a running one does not move"
    ),
    "spec.allowNonRestoredState": FieldEffect("nothing", "says whether the savepoint may have more queries than the app"),
    **dict.fromkeys(
        (
            "spec.executor.slots",
            "spec.executor.cores",
            "spec.executor.memory",
            "spec.executor.heap",
            "spec.executor.ephemeralStorage",
            "spec.driver.cores",
            "spec.driver.memory",
            "spec.driver.heap",
            "spec.driver.ephemeralStorage",
        ),
        _SIZE,
    ),
    "spec.executor.spread": _PLACED,
    "spec.executor.spread.nodes": _PLACED,
    "spec.executor.spread.zones": _PLACED,
    "spec.trigger": FieldEffect("restart", "another interval; availableNow runs the driver as a Job, which ends"),
    "spec.progressTimeout": _LIMIT,
    "spec.restart.failures": _LIMIT,
    "spec.restart.within": _LIMIT,
    "spec.bounded": FieldEffect("restart with state", "may be added at any start, and not be removed once the input has ended (JOB-022)"),
    "spec.whenIdle": _TIME,
    _SOURCE: FieldEffect("state must be reset", "a query that goes on must have the sources that it began with, in their order (JOB-105)"),
    f"{_SOURCE}.kafka.topic": _SUBSCRIPTION,
    f"{_SOURCE}.kafka.topics": _SUBSCRIPTION,
    f"{_SOURCE}.kafka.pattern": _SUBSCRIPTION,
    f"{_SOURCE}.kafka.partitions": _TOPIC,
    f"{_SOURCE}.kafka.startingOffsets": FieldEffect("restart", "only a query without a micro-batch starts there"),
    f"{_SOURCE}.kafka.startingGroup": FieldEffect("restart", "only a query without a micro-batch starts where this group is"),
    **dict.fromkeys(
        (
            f"{_SOURCE}.kafka.value",
            f"{_SOURCE}.kafka.avro",
            f"{_SOURCE}.kafka.avro.schemaFile",
            f"{_SOURCE}.kafka.avro.framing",
            f"{_SOURCE}.kafka.avro.schemaId",
            f"{_SOURCE}.kafka.csv",
            f"{_SOURCE}.kafka.csv.separator",
            f"{_SOURCE}.kafka.csv.quote",
            f"{_SOURCE}.kafka.tombstones",
            f"{_SOURCE}.kafka.key",
            f"{_SOURCE}.kafka.key.fields",
            f"{_SOURCE}.kafka.key.format",
            f"{_SOURCE}.kafka.isolationLevel",
            f"{_SOURCE}.files.format",
            f"{_SOURCE}.files.csv",
            f"{_SOURCE}.files.csv.separator",
            f"{_SOURCE}.files.csv.quote",
        ),
        _DECODED,
    ),
    f"{_SOURCE}.kafka.maxOffsetsPerTrigger": _RATE,
    f"{_SOURCE}.kafka.minPartitions": _RATE,
    f"{_SOURCE}.kafka.groupIdPrefix": FieldEffect("restart", "Spark reads with another group; the offsets are the checkpoint's"),
    f"{_SOURCE}.kafka.groupId": FieldEffect(
        "restart", "offsets are committed to this group from here on; only a query without a micro-batch starts where it is"
    ),
    f"{_SOURCE}.kafka.properties.*": FieldEffect("restart", "the consumers read on with it"),
    f"{_SOURCE}.kafka.commitOffsets": FieldEffect("restart", "offsets are committed to the consumer group, or no longer"),
    f"{_SOURCE}.files.path": _FOLDER,
    f"{_SOURCE}.files.bucket": _FOLDER,
    f"{_SOURCE}.files.maxFilesPerTrigger": _RATE,
    **dict.fromkeys((f"{_SOURCE}.files.input", *(f"{_SOURCE}.files.input.{one}" for one in ("files", "size", "splittable"))), _PLANNED),
    f"{_SOURCE}.socket.connection": _SOCKET,
    **dict.fromkeys(
        (
            f"{_SOURCE}.time",
            f"{_SOURCE}.time.kind",
            f"{_SOURCE}.time.field",
            f"{_SOURCE}.time.format",
            f"{_SOURCE}.time.outOfOrderness",
            f"{_SOURCE}.time.idleness",
            f"{_SOURCE}.time.allowedLateness",
            f"{_SOURCE}.time.maxAhead",
        ),
        _TIME,
    ),
    "spec.connections.*": FieldEffect("restart", "the environment must have a connection of this name and kind"),
    **dict.fromkeys(
        (
            "spec.tables.*",
            "spec.tables.*.postgres.connection",
            "spec.tables.*.postgres.table",
            "spec.tables.*.postgres.key",
            "spec.tables.*.postgres.columns",
            "spec.tables.*.cache.ttl",
            "spec.tables.*.cache.entries",
        ),
        _LOOKUP,
    ),
    **dict.fromkeys(
        (
            "spec.sinks.*",
            "spec.sinks.*.kafka.feedback",
            "spec.sinks.*.kafka.feedback.maxRounds",
            "spec.sinks.*.kafka.feedback.column",
            "spec.sinks.*.files.path",
            "spec.sinks.*.files.bucket",
            "spec.sinks.*.files.format",
            "spec.sinks.*.files.prefix",
            "spec.sinks.*.files.suffix",
            "spec.sinks.*.files.bucketBy",
            "spec.sinks.*.files.datePattern",
            "spec.sinks.*.files.zone",
            "spec.sinks.*.files.roll.size",
            "spec.sinks.*.files.roll.interval",
            "spec.sinks.*.files.roll.inactivity",
            "spec.sinks.*.kafka.topic",
            "spec.sinks.*.kafka.key",
            "spec.sinks.*.kafka.guarantee",
            "spec.sinks.*.kafka.transactionTimeout",
            "spec.sinks.*.kafka.deletes",
            "spec.sinks.*.kafka.properties.*",
            "spec.sinks.*.postgres.connection",
            "spec.sinks.*.postgres.table",
            "spec.sinks.*.postgres.key",
            "spec.sinks.*.postgres.version",
            "spec.sinks.*.postgres.deletes",
            "spec.sinks.*.redis.connection",
            "spec.sinks.*.redis.key",
            "spec.sinks.*.redis.prefix",
            "spec.sinks.*.redis.ttl",
            "spec.sinks.*.redis.deletes",
            "spec.sinks.*.webhook.connection",
            "spec.sinks.*.webhook.rows",
            "spec.sinks.*.webhook.timeout",
            "spec.sinks.*.webhook.attempts",
            "spec.sinks.*.console.rows",
            "spec.sinks.*.function.name",
        ),
        _WRITTEN,
    ),
    "spec.sinks.*.kafka.partitions": _TOPIC,
    "spec.topics.*": _TOPIC,
    "spec.topics.*.partitions": _TOPIC,
    "spec.topics.*.replication": _TOPIC,
    "spec.topics.*.retention": _TOPIC,
    "spec.topics.*.cleanupPolicy": _TOPIC,
    "spec.topics.*.config.*": _TOPIC,
    "spec.quarantine": _LIMIT,
    "spec.quarantine.share": _LIMIT,
    "spec.quarantine.records": _LIMIT,
    "spec.state.backend": FieldEffect("state must be reset", "a checkpoint can't be continued with another state store"),
    "spec.state.incremental": FieldEffect("restart with state", "the state is uploaded in the new way from the next micro-batch on"),
    "spec.state.ttl": FieldEffect(
        "restart with state",
        "Spark stores a value with an expiry otherwise than one without: adding or removing it needs an empty checkpoint",
    ),
    "spec.checkpoint.retention": FieldEffect("restart", "more or fewer micro-batches are kept from here on"),
    "spec.checkpoint.stateSchema": FieldEffect("restart", "decides whether this change is compared with the state"),
    "spec.parameters.*": FieldEffect("restart with state", "the app decides what it means"),
    "spec.sparkConf.*": FieldEffect(
        "restart", "settings that Spark keeps in a checkpoint, such as those of the state store, stay as they were"
    ),
    "spec.local.input.*": _LOCAL,
    "spec.local.connections.*": _LOCAL,
    "spec.local.connections.*.postgres": _LOCAL,
    "spec.local.connections.*.redis": _LOCAL,
    "spec.local.connections.*.http": _LOCAL,
    "spec.local.connections.*.socket": _LOCAL,
    "spec.local.expect": _LOCAL,
}

# Kind of a field -> what its change means.
EFFECTS: dict[Path, FieldEffect] = {tuple(path.split(".")): effect for path, effect in _EFFECTS.items()}


def effect_of(field: ChangedField, before: StreamingJob, now: StreamingJob) -> FieldEffect:
    """What the change of a field means in two specs: topics may be added to a source, a source for another output, and state may be
    repartitioned.

    Args:
        field: that differs.
        before: the spec that runs.
        now: the spec that is wanted.
    """
    if EFFECTS[field.kind] is _SUBSCRIPTION and _reads_on(before, now):
        return _READS_ON
    if EFFECTS[field.kind] is _SUBSCRIPTION and _named(before, field) and _named(before, field) <= _named(now, field):
        return _MORE_TOPICS
    if ".".join(field.kind) == _SOURCE and field.path[-1] not in before.spec.sources:
        return _MORE_SOURCES
    if EFFECTS[field.kind] in (_SLOTS, _PARTITIONS) and now.spec.upgrade_mode == "savepoint" and not now.spec.bounded:
        return _REPARTITIONED
    return EFFECTS[field.kind]


def _reads_on(before: StreamingJob, now: StreamingJob) -> bool:
    """Whether the job starts from a savepoint, and not at its offsets."""
    old, new = before.spec, now.spec
    another = old.initial_savepoint_path != new.initial_savepoint_path and old.restart_nonce != new.restart_nonce
    return another and new.initial_offsets is not None


def _named(job: StreamingJob, field: ChangedField) -> set[str]:
    """The topics that the spec names for the field's source; empty for a pattern."""
    return set(job.spec.kafka_sources[field.path[2]].named)
