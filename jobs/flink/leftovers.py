"""Fields of a FlinkDeployment without a counterpart in a job spec, each with a note: none are dropped silently."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.jobs.document import Path_, shown
from penstock.jobs.flink import restart
from penstock.jobs.flink.deployment import SPEC, DeploymentFile, known_fields, mapping_at, understood_places
from penstock.sizing.flink.memory import MEMORY_KEYS

# Keys that `penstock.jobs.flink.conversion` reads and writes notes for.
READ_KEYS = {
    "taskmanager.memory.process.size",
    "jobmanager.memory.process.size",
    "taskmanager.numberOfTaskSlots",
    "taskmanager.cpu.cores",
    "kubernetes.taskmanager.cpu.amount",
    "kubernetes.taskmanager.cpu",
    "kubernetes.taskmanager.cpu.limit-factor",
    "kubernetes.jobmanager.cpu.amount",
    "kubernetes.jobmanager.cpu",
    "kubernetes.jobmanager.cpu.limit-factor",
    "parallelism.default",
    "pipeline.max-parallelism",
    "pipeline.jobvertex-parallelism-overrides",
    "state.backend",
    "state.backend.type",
    "state.backend.incremental",
    "execution.checkpointing.incremental",
    "execution.checkpointing.interval",
    "execution.checkpointing.timeout",
    restart.MOST,
    restart.INTERVAL,
}

_POD_TEMPLATE = (
    "labels, volumes, sidecars, node selectors and tolerations come from the environment (its NodePools and the driver's manifest)"
)
_SAVEPOINT = "Spark cannot read Flink's savepoints: the first run starts with empty state, from the sources' starting offsets"
# Of the metadata that kubectl prints: what the API server and the operator write, which no spec has.
# Source: Kubernetes API reference, ObjectMeta.
_OF_A_LIVE_OBJECT = frozenset({"creationTimestamp", "finalizers", "generation", "managedFields", "resourceVersion", "uid"})
# Field of the deployment -> its note.
_FIELDS: dict[Path_, str] = {
    ("status",): "reported by the operator, not part of the desired state",
    (*SPEC, "flinkVersion"): "the Spark version is that of the image",
    (*SPEC, "mode"): "Spark's driver starts its executors itself, as Flink does in native mode",
    (*SPEC, "image"): "the image of driver and executors comes from the environment",
    (*SPEC, "imagePullPolicy"): "belongs to the image, which comes from the environment",
    (*SPEC, "serviceAccount"): "the driver has its own service account and IAM role, derived from the sources and sinks",
    (*SPEC, "ingress"): "no UI is exposed; use a port-forward to the driver pod for the Spark UI",
    (*SPEC, "podTemplate"): _POD_TEMPLATE,
    (*SPEC, "jobManager", "podTemplate"): _POD_TEMPLATE,
    (*SPEC, "taskManager", "podTemplate"): _POD_TEMPLATE,
    (*SPEC, "logConfiguration"): "log4j2.properties is part of the image",
    (*SPEC, "restartNonce"): "counts restarts of the past; another restartNonce in the spec restarts the job",
    (*SPEC, "job", "savepointTriggerNonce"): "every micro-batch commits a checkpoint; penstock savepoint create takes a savepoint",
    (*SPEC, "job", "checkpointTriggerNonce"): "every micro-batch commits a checkpoint",
    (*SPEC, "job", "savepointRedeployNonce"): _SAVEPOINT,
    (*SPEC, "job", "initialSavepointPath"): _SAVEPOINT,
    (
        *SPEC,
        "job",
        "allowNonRestoredState",
    ): "belongs to initialSavepointPath; state that does not fit the app is refused before its queries start",
    (*SPEC, "job", "autoscalerResetNonce"): "there is no autoscaler",
    (*SPEC, "jobManager", "resource", "ephemeralStorage"): "the disk size of nodes comes from the environment",
    (
        *SPEC,
        "taskManager",
        "resource",
        "ephemeralStorage",
    ): "shuffle files and RocksDB use the node's disk, whose size comes from the environment",
}
# Prefix of a Flink key -> its note; the longest match applies.
_KEYS = {
    "high-availability": "a single driver runs as a StatefulSet without standby, and the checkpoint on S3 replaces HA metadata",
    "state.backend.rocksdb.": "RocksDB is tuned with spark.sql.streaming.stateStore.rocksdb.* in sparkConf",
    "state.checkpoints.dir": "the checkpoint bucket comes from the environment",
    "execution.checkpointing.dir": "the checkpoint bucket comes from the environment",
    "state.savepoints.dir": "savepoints are in the checkpoint bucket, which comes from the environment",
    "execution.checkpointing.savepoint-dir": "savepoints are in the checkpoint bucket, which comes from the environment",
    "state.": "Spark's state stores are set with spark.sql.streaming.stateStore.* in sparkConf",
    "execution.checkpointing.mode": "exactly-once or at-least-once is set per sink: see each sink's guarantee",
    "execution.checkpointing.": "Spark commits each micro-batch; there are no barriers or minimum pauses to configure",
    "execution.": "Flink's execution; a micro-batch engine has only the trigger",
    "restart-strategy": "Kubernetes restarts the driver, which resumes from its last commit; spec.restart limits failures within a time",
    "job.autoscaler.": "open-source Structured Streaming does not autoscale: the parallelism is fixed; size it for the peak",
    "jobmanager.scheduler": "the number of executors is fixed",
    "scheduler-mode": "the number of executors is fixed",
    "kubernetes.operator.": "a setting of the Flink operator, which no longer manages the job",
    "kubernetes.": "pods and nodes come from the environment; pod settings are spark.kubernetes.* in sparkConf",
    "metrics.": "Spark metrics are configured with spark.metrics.conf.* in sparkConf",
    "s3.": "S3 is accessed through s3a with the driver's role; other settings are spark.hadoop.fs.s3a.* in sparkConf",
    "fs.": "S3 is accessed through s3a with the driver's role; other settings are spark.hadoop.fs.s3a.* in sparkConf",
    "env.java.opts": "JVM options are spark.driver.extraJavaOptions and spark.executor.extraJavaOptions in sparkConf",
    "env.": "environment variables are spark.executorEnv.* in sparkConf",
    "table.": "a setting of Flink SQL; Spark's are spark.sql.* in sparkConf",
    "python.": "the memory of Python workers is part of the overhead; their environment is that of the image",
    "pipeline.": "a setting of Flink's job graph",
    "rest.": "Flink's REST interface; Spark's user interface has spark.ui.* in sparkConf",
    "web.": "Flink's user interface; Spark's has spark.ui.* in sparkConf",
    "taskmanager.network.": "Spark moves data between stages through files on the node's disk, not through network buffers",
    "taskmanager.": "a TaskManager setting without an equivalent for executors",
    "jobmanager.": "a JobManager setting without an equivalent for the driver",
}
_SHARE = "divides Flink's process memory; Penstock splits the pod into heap and overhead, configurable in sparkConf"
_UNKNOWN_KEY = "has no known counterpart; migrate it manually if the job needs it"
_UNKNOWN_FIELD = "unknown field; not included in the spec"


def leftovers(file: DeploymentFile) -> Iterator[tuple[Path_, str, str]]:
    """All fields and keys that the spec has no field for.

    Yields:
        The path in the document, the value at that path, and its note.
    """
    for path in understood_places():
        for name in mapping_at(file.document, path):
            place = (*path, name)
            if place in _FIELDS or name not in known_fields(path):
                yield place, file.document.given(place), _FIELDS.get(place, _UNKNOWN_FIELD)
    for name in mapping_at(file.document, ("metadata",)):
        if name != "name" and name not in _OF_A_LIVE_OBJECT:
            place = ("metadata", name)
            yield place, file.document.given(place), "namespace and labels come from the environment"
    for key, place in file.places.items():
        if key not in READ_KEYS:
            yield place, shown(file.configuration[key]), _words(key)


def _words(key: str) -> str:
    if key in MEMORY_KEYS:
        return _SHARE
    fitting = [beginning for beginning in _KEYS if key.startswith(beginning)]
    return _KEYS[max(fitting, key=len)] if fitting else _UNKNOWN_KEY
