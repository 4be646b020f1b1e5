"""What of a FlinkDeployment has no counterpart in a job spec, and what becomes of it: nothing is dropped in silence."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.jobs.document import Path_, shown
from penstock.jobs.flink.deployment import SPEC, DeploymentFile, known_fields, mapping_at, understood_places
from penstock.sizing.flink.memory import MEMORY_KEYS

# Keys that `penstock.jobs.flink.conversion` reads; it says itself what it makes of them.
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
}

_POD_TEMPLATE = "labels, volumes, sidecars, node selectors and tolerations are the environment's (its NodePools and the driver's manifest)"
_SAVEPOINT = "Spark can't read Flink's savepoints: the first run starts with empty state, from the offsets that the sources name"
# Field of the deployment -> what becomes of it.
_FIELDS: dict[Path_, str] = {
    ("status",): "what the operator reports, no part of the wish",
    (*SPEC, "flinkVersion"): "Spark's version is the image's",
    (*SPEC, "mode"): "Spark's driver starts its executors itself, as Flink does in native mode",
    (*SPEC, "image"): "the driver's and the executors' image is the environment's",
    (*SPEC, "imagePullPolicy"): "goes with the image, which is the environment's",
    (*SPEC, "serviceAccount"): "the driver has a service account and a role of its own, made from the sources and sinks",
    (*SPEC, "ingress"): "no user interface is published; Spark's is reached by a port-forward to the driver's pod",
    (*SPEC, "podTemplate"): _POD_TEMPLATE,
    (*SPEC, "jobManager", "podTemplate"): _POD_TEMPLATE,
    (*SPEC, "taskManager", "podTemplate"): _POD_TEMPLATE,
    (*SPEC, "logConfiguration"): "Spark's log4j2.properties is the image's",
    (*SPEC, "restartNonce"): "a restart is a deployment of the same spec",
    (*SPEC, "job", "savepointTriggerNonce"): "savepoints are asked for on the command line, not in the spec",
    (*SPEC, "job", "checkpointTriggerNonce"): "every micro-batch commits a checkpoint",
    (*SPEC, "job", "savepointRedeployNonce"): _SAVEPOINT,
    (*SPEC, "job", "initialSavepointPath"): _SAVEPOINT,
    (
        *SPEC,
        "job",
        "allowNonRestoredState",
    ): "before an upgrade the new code is held against the stored state, and what does not fit is refused",
    (*SPEC, "job", "autoscalerResetNonce"): "there is no autoscaler to reset",
    (*SPEC, "jobManager", "resource", "ephemeralStorage"): "the size of a node's disk is the environment's",
    (
        *SPEC,
        "taskManager",
        "resource",
        "ephemeralStorage",
    ): "shuffle files and RocksDB lie on the node's disk, whose size is the environment's",
}
# Beginning of a Flink key -> what becomes of it; the longest that fits is taken.
_KEYS = {
    "high-availability": "one driver runs as a StatefulSet, and the checkpoint on S3 holds what HA metadata held; nothing stands by",
    "state.backend.rocksdb.": "RocksDB is tuned with spark.sql.streaming.stateStore.rocksdb.* in sparkConf",
    "state.checkpoints.dir": "the checkpoint's bucket is the environment's",
    "execution.checkpointing.dir": "the checkpoint's bucket is the environment's",
    "state.savepoints.dir": "savepoints lie in the environment's bucket",
    "execution.checkpointing.savepoint-dir": "savepoints lie in the environment's bucket",
    "state.": "Spark's state stores are set with spark.sql.streaming.stateStore.* in sparkConf",
    "execution.checkpointing.mode": "exactly-once or at-least-once is a sink's: see each sink's delivery",
    "execution.checkpointing.": "Spark commits each micro-batch; there are no barriers to align and no pauses to set",
    "execution.": "how Flink runs a job; the trigger is all that a micro-batch engine has of it",
    "restart-strategy": "Kubernetes restarts the driver, which goes on from its last commit",
    "job.autoscaler.": "open-source Structured Streaming does not follow the rate: the parallelism stays; size it for the peak",
    "jobmanager.scheduler": "the number of executors is fixed",
    "scheduler-mode": "the number of executors is fixed",
    "kubernetes.operator.": "a setting of the Flink operator, which no longer has the job",
    "kubernetes.": "pods and nodes are the environment's; a pod's own settings are spark.kubernetes.* in sparkConf",
    "metrics.": "Spark reports its metrics by spark.metrics.conf.* in sparkConf",
    "s3.": "S3 is reached as s3a with the driver's role; other settings are spark.hadoop.fs.s3a.* in sparkConf",
    "fs.": "S3 is reached as s3a with the driver's role; other settings are spark.hadoop.fs.s3a.* in sparkConf",
    "env.java.opts": "JVM options are spark.driver.extraJavaOptions and spark.executor.extraJavaOptions in sparkConf",
    "env.": "environment variables are spark.executorEnv.* in sparkConf",
    "table.": "a setting of Flink SQL; Spark's are spark.sql.* in sparkConf",
    "python.": "Python's workers have their memory in the overhead; their environment is the image's",
    "pipeline.": "a setting of Flink's job graph",
    "rest.": "Flink's REST interface; Spark's user interface has spark.ui.* in sparkConf",
    "web.": "Flink's user interface; Spark's has spark.ui.* in sparkConf",
    "taskmanager.network.": "Spark moves data between stages through files on the node's disk, not through network buffers",
    "taskmanager.": "a setting of the TaskManager that an executor does not have",
    "jobmanager.": "a setting of the JobManager that a driver does not have",
}
_SHARE = "shares out Flink's process; Penstock splits the pod into heap and overhead, which sparkConf can change"
_UNKNOWN_KEY = "has no counterpart that is known here; carry it over by hand if the job needs it"
_UNKNOWN_FIELD = "a field that is not known here; nothing of it is in the spec"


def leftovers(file: DeploymentFile) -> Iterator[tuple[Path_, str, str]]:
    """Every field and key that the spec does not take.

    Yields:
        The path in the document, the value as it stands there, and what becomes of it in words.
    """
    for path in understood_places():
        for name in mapping_at(file.document, path):
            place = (*path, name)
            if place in _FIELDS or name not in known_fields(path):
                yield place, file.document.given(place), _FIELDS.get(place, _UNKNOWN_FIELD)
    for name in mapping_at(file.document, ("metadata",)):
        if name != "name":
            place = ("metadata", name)
            yield place, file.document.given(place), "the namespace and the labels are the environment's"
    for key, place in file.places.items():
        if key not in READ_KEYS:
            yield place, shown(file.configuration[key]), _words(key)


def _words(key: str) -> str:
    if key in MEMORY_KEYS:
        return _SHARE
    fitting = [beginning for beginning in _KEYS if key.startswith(beginning)]
    return _KEYS[max(fitting, key=len)] if fitting else _UNKNOWN_KEY
