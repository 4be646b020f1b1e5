"""Converts a FlinkDeployment to the job spec that replaces it.

A deployment defines the size of a job, its upgrade mode and its checkpoint interval; these are converted to the spec. The logic of the
job is in its jar, so the spec names an app that its author has to write. Fields without a counterpart become comments; none are dropped.
"""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from penstock.jobs.document import Document, Path_, shown
from penstock.jobs.errors import BadValue, Contradiction, MissingField
from penstock.jobs.flink.deployment import CONFIGURATION, SPEC, DeploymentFile, JobManager, TaskManager, understand
from penstock.jobs.flink.leftovers import leftovers
from penstock.jobs.flink.pods import FlinkPod, FlinkPods
from penstock.jobs.flink.reading import Reading, noted
from penstock.jobs.flink.restart import restart
from penstock.jobs.flink.spec_text import LEFTOVER, Note, cores_text, duration_text, spec_text
from penstock.jobs.spec import StreamingJob
from penstock.sizing.flink.errors import BadFlinkSetting
from penstock.sizing.flink.job import FlinkJob
from penstock.sizing.flink.memory import JobManagerMemory, TaskManagerMemory
from penstock.sizing.flink.parallelism import max_parallelism, task_managers
from penstock.sizing.flink.values import boolean, duration_ms, whole_number
from penstock.sizing.targets import MAX_PARALLELISM, DriverTarget, ExecutorTarget, Operators, Origin, Parallelism, Targets
from penstock.sizing.units import NotAQuantity

# Source: flink-kubernetes-operator, FlinkConfigBuilder.DEFAULT_CHECKPOINTING_INTERVAL, for last-state.
OPERATORS_CHECKPOINT_INTERVAL_MS = 300_000
# Penstock's trigger; a Flink job with a shorter checkpoint interval publishes exactly-once output more often than this.
DEFAULT_TRIGGER_MS = 10_000
_LATENCY = "in Spark the trigger is the latency as well, and each micro-batch commits a checkpoint"
# Source: the bound of penstock.jobs.spec.Executor.slots.
MAX_SLOTS = 1024

# Source: Spark's documentation, "Configuration".
OVERHEAD = "spark.executor.memoryOverhead"
_INCREMENTAL = ("execution.checkpointing.incremental", "state.backend.incremental")
_BACKEND = ("state.backend.type", "state.backend")
_INTERVAL = "execution.checkpointing.interval"
_TIMEOUT = "execution.checkpointing.timeout"
_SLOTS = "taskmanager.numberOfTaskSlots"
_OVERRIDES = "pipeline.jobvertex-parallelism-overrides"
# Flink's names of its state backends, and older ones; a class is identified by the end of its name.
_BACKENDS = {"rocksdb": "rocksdb", "hashmap": "hashmap", "filesystem": "hashmap", "jobmanager": "hashmap"}


class Conversion(BaseModel):
    """Result of converting a FlinkDeployment.

    Args:
        text: the job spec as YAML with comments.
        document: the same spec as plain data.
        job: the same spec as a model.
        flink: the job as Flink sizes it.
        targets: input of sizing, with the lines of the deployment.
        notes: notes in the order of the spec, those on fields without a counterpart last.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    document: dict[str, Any]
    job: StreamingJob
    flink: FlinkJob
    targets: Targets
    notes: tuple[Note, ...]


def convert(document: Document) -> Conversion:
    """Converts the document of a FlinkDeployment to a job spec.

    Raises:
        PenstockError: the errors of `penstock.jobs.flink.deployment.understand`, and SPEC-005 to SPEC-008 and SIZ-055 to SIZ-057 for what
            Flink or its operator would reject; several are raised as `Faults`.
    """
    return conversion(understand(document, Path(document.file)))


def conversion(file: DeploymentFile, overhead_mib: int | None = None) -> Conversion:
    """Converts a FlinkDeployment to a job spec; raises the errors of `convert`.

    Args:
        file: the deployment, or a job of a session cluster as one.
        overhead_mib: of the executors of a session; None: Spark's own.
    """
    made = _Maker(file, overhead_mib).make()
    left = [noted(file, LEFTOVER, path, words, given) for path, given, words in leftovers(file)]
    notes = (*made.notes, *sorted(left, key=lambda note: (note.file, note.line or 0)))
    replaced = f"FlinkDeployment {made.flink.name}" if file.cluster is None else f"FlinkSessionJob {made.flink.name} of {file.cluster}"
    return Conversion(
        text=spec_text(f"The job spec that replaces the {replaced}. Sources and sinks are to be added.", made.document, notes),
        document=made.document,
        job=StreamingJob.model_validate(made.document),
        flink=made.flink,
        targets=_targets(made),
        notes=notes,
    )


class _Made(NamedTuple):
    document: dict[str, Any]
    flink: FlinkJob
    notes: tuple[Note, ...]
    origins: dict[str, Origin]


class _Maker:
    """Derives the spec's values from those of the deployment."""

    def __init__(self, file: DeploymentFile, overhead_mib: int | None = None) -> None:
        self._doc = Reading(file)
        self._overhead_mib = overhead_mib

    def make(self) -> _Made:
        """The spec's values, the job as Flink sizes it, the notes, and the origin of each number.

        Raises:
            PenstockError: all errors of the deployment.
        """
        pods = FlinkPods(self._doc)
        slots = self._slots()
        parallelism = self._parallelism(slots)
        task_pod = pods.task_manager(slots)
        job_pod = pods.job_manager()
        interval_ms = self._interval_ms()
        timeout = self._timeout(min(interval_ms or DEFAULT_TRIGGER_MS, DEFAULT_TRIGGER_MS))
        limit = restart(self._doc)
        backend, state = self._state()
        most = self._max_parallelism(parallelism)
        self._doc.raise_faults()
        assert task_pod is not None and job_pod is not None
        self._about_the_app()
        self._about_the_job()
        flink = FlinkJob(
            name=self._doc.file.deployment.metadata.name,
            parallelism=parallelism,
            slots=slots,
            task_managers=task_managers(parallelism, slots),
            task_manager=task_pod.memory,
            task_manager_cpu_millicores=task_pod.cpu_millicores,
            task_manager_cpu_limit_millicores=task_pod.limit_millicores,
            job_managers=(self._doc.spec.job_manager or JobManager()).replicas or 1,
            job_manager=job_pod.memory,
            job_manager_cpu_millicores=job_pod.cpu_millicores,
            job_manager_cpu_limit_millicores=job_pod.limit_millicores,
            state_backend=backend,
            checkpoint_interval_ms=interval_ms,
            max_parallelism=most,
        )
        document = self._document(flink, task_pod, job_pod, {**timeout, **limit, "state": state})
        if self._doc.file.cluster is not None:
            self._in_session(document["spec"])
        return _Made(document, flink, tuple(self._doc.notes), self._doc.origins())

    def _in_session(self, spec: dict[str, Any]) -> None:
        """Of a job in a session: the driver is not its own, and the executors have Python workers of all jobs."""
        del spec["driver"]
        self._doc.notes = [note for note in self._doc.notes if note.field != "driver"]
        self._doc.paths = {field: path for field, path in self._doc.paths.items() if not field.startswith("driver.")}
        self._doc.note("driver", (), _NO_JOB_MANAGER)
        if self._overhead_mib is not None:
            spec["sparkConf"] = {OVERHEAD: f"{self._overhead_mib}m"}
            words = "the executors of the session hold the Python workers of all its jobs; what is left of the pod's memory is the heap"
            self._doc.note("sparkConf", (), words)

    def _document(
        self, flink: FlinkJob, task_pod: FlinkPod[TaskManagerMemory], job_pod: FlinkPod[JobManagerMemory], rest: dict[str, Any]
    ) -> dict[str, Any]:
        # A record passes through Flink at once, whatever the interval; Spark reads it in the next micro-batch: the trigger is its latency.
        interval_ms = flink.checkpoint_interval_ms
        trigger = {} if interval_ms is None else {"trigger": duration_text(min(interval_ms, DEFAULT_TRIGGER_MS))}
        spec = {
            "app": app_name(flink.name, self._doc.spec.job.entry_class, self._doc.spec.job.args or []),
            "parallelism": flink.parallelism,
            "upgradeMode": self._doc.spec.job.upgrade_mode,
            "executor": {"slots": flink.slots, "cores": cores_text(task_pod.cpu_millicores), "memory": task_pod.memory_text},
            "driver": {"cores": cores_text(job_pod.cpu_millicores), "memory": job_pod.memory_text},
            **trigger,
            **rest,
        }
        return {"apiVersion": "penstock/v1", "kind": "StreamingJob", "metadata": {"name": flink.name}, "spec": spec}

    def _slots(self) -> int:
        slots = self._doc.read(_SLOTS, whole_number, 1)
        self._doc.paths["executor.slots"] = self._doc.places.get(_SLOTS, CONFIGURATION)
        if slots > MAX_SLOTS:
            self._doc.fault(BadValue(need=f"at most {MAX_SLOTS} slots", fix="use a number in range"), self._doc.places[_SLOTS])
        if _SLOTS not in self._doc.places:
            self._doc.note("executor", (), f"{_SLOTS} is not set: Flink's default is 1 slot")
        return min(slots, MAX_SLOTS)

    def _parallelism(self, slots: int) -> int:
        """The operator's order of precedence: the replicas of the TaskManagers, the autoscaler's overrides, the job's own parallelism."""
        job, replicas = self._doc.spec.job, (self._doc.spec.task_manager or TaskManager()).replicas
        self._doc.note(
            "parallelism",
            (),
            "a parallelism set in the Flink job's code (env.setParallelism) takes precedence: if there is one, use it here",
        )
        at: Path_ = (*SPEC, "job", "parallelism")
        parallelism = job.parallelism
        if replicas is not None:
            at, parallelism = (*SPEC, "taskManager", "replicas"), replicas * slots
            self._doc.note("parallelism", at, f"{replicas} TaskManagers x {slots} slots; the operator then ignores job.parallelism")
        elif overrides := self._overrides():
            at, parallelism = self._doc.places[_OVERRIDES], max(overrides)
            self._doc.note("parallelism", at, "the largest of the autoscaler's overrides, which the operator prefers to job.parallelism")
        self._doc.paths["parallelism"] = at
        if parallelism > MAX_PARALLELISM:
            self._doc.fault(
                BadValue(need=f"a parallelism of at most {MAX_PARALLELISM}; this results in {parallelism}", fix="use a number in range"), at
            )
        elif parallelism < 1:
            self._missing_parallelism(at)
        if "parallelism.default" in self._doc.places:
            self._doc.note("parallelism", self._doc.places["parallelism.default"], "overwritten by the operator with the job's parallelism")
        return min(max(1, parallelism), MAX_PARALLELISM)

    def _missing_parallelism(self, at: Path_) -> None:
        default = self._doc.settings.get("parallelism.default", "1")
        need = "job.parallelism of at least 1, as the operator requires; it ignores parallelism.default"
        self._doc.fault(MissingField(need=need, fix=f"parallelism: {shown(default).strip(chr(34))}"), at)

    def _overrides(self) -> list[int]:
        """The parallelism of each vertex, from ``vertex:4,vertex:8``."""
        text = self._doc.settings.get(_OVERRIDES, "")
        numbers = [part.rpartition(":")[2].strip() for part in re.split(r"[,\n]", text.strip().strip("{}")) if part.strip()]
        try:
            return [whole_number(number.strip("\"' ")) for number in numbers]
        except NotAQuantity as fault:
            self._doc.fault(
                BadFlinkSetting(need=f"vertex:parallelism pairs, {fault.need} each", fix=fault.fix), self._doc.places[_OVERRIDES]
            )
            return []

    def _interval_ms(self) -> int | None:
        interval_ms = self._doc.read(_INTERVAL, duration_ms, 0)
        path = self._doc.places.get(_INTERVAL)
        if path:
            words = (
                f"the checkpoint interval is {duration_text(interval_ms)}; {_LATENCY}" if interval_ms else "no checkpoints by configuration"
            )
            self._doc.note("trigger", path, f"{words}; a shorter trigger reduces latency, at the cost of more objects written")
            return interval_ms or None
        if self._doc.spec.job.upgrade_mode == "last-state":
            default = duration_text(OPERATORS_CHECKPOINT_INTERVAL_MS)
            words = f"the operator's default checkpoint interval for last-state is {default}; {_LATENCY}"
            self._doc.note("trigger", (), f"{words}; a shorter trigger reduces latency")
            return OPERATORS_CHECKPOINT_INTERVAL_MS
        self._doc.note(
            "trigger", (), f"{_INTERVAL} is not set, so the trigger is Penstock's default of 10s; the job's code may set an interval"
        )
        return None

    def _timeout(self, trigger_ms: int) -> dict[str, str]:
        """The limit of a micro-batch, which commits a checkpoint; one below the trigger is raised to it."""
        path = self._doc.places.get(_TIMEOUT)
        if path is None:
            return {}
        asked_ms = self._doc.read(_TIMEOUT, duration_ms, 0)
        words = "Flink fails a checkpoint after it; a job here restarts if it shows no progress for as long"
        self._doc.note("progressTimeout", path, words if asked_ms >= trigger_ms else f"{words}; at least the trigger")
        return {"progressTimeout": duration_text(max(asked_ms, trigger_ms))}

    def _state(self) -> tuple[Any, dict[str, Any]]:
        key = next((key for key in _BACKEND if key in self._doc.places), None)
        incremental = next((self._doc.read(key, boolean, False) for key in _INCREMENTAL if key in self._doc.places), False)
        if key is None:
            self._doc.note(
                "state", (), "no state backend is set: Flink's default is hashmap, on the heap; the job's code may set another one"
            )
            return "hashmap", {"backend": "memory", "incremental": False}
        name = self._doc.settings[key].strip()
        backend = _BACKENDS.get(name.lower()) or (
            "rocksdb" if "rocksdb" in name.lower() else "hashmap" if "hashmap" in name.lower() else "other"
        )
        if backend == "hashmap":
            self._doc.note(
                "state",
                self._doc.places[key],
                "on the JVM heap in both; Spark keeps every version of the state that it may roll back to",
            )
            return "hashmap", {"backend": "memory", "incremental": False}
        bounded = "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage"
        words = f"RocksDB's native memory is part of the pod's overhead, unbounded unless sparkConf sets {bounded}"
        self._doc.note(
            "state",
            self._doc.places[key],
            words if backend == "rocksdb" else f"not available in Spark; rocksdb is the closest backend. {words}",
        )
        return backend, {"backend": "rocksdb", "incremental": incremental}

    def _max_parallelism(self, parallelism: int) -> int:
        most = self._doc.read("pipeline.max-parallelism", whole_number, max_parallelism(parallelism))
        if "pipeline.max-parallelism" in self._doc.places:
            at = self._doc.places["pipeline.max-parallelism"]
            self._doc.note("parallelism", at, "in Spark, the shuffle partitions of the first run limit the parallelism of the state")
            if not parallelism <= most <= MAX_PARALLELISM:
                self._doc.fault(
                    Contradiction(need=f"from the parallelism, {parallelism}, to {MAX_PARALLELISM}", fix="use a number in range"), at
                )
        return most

    def _about_the_app(self) -> None:
        job = self._doc.spec.job
        what = " of ".join(shown(part) for part in (job.entry_class, job.jar_uri) if part) or "the Flink job's jar"
        words = f"a Python module to be written: it declares the sources, queries and sinks that {what} has in its code"
        for name in ("entryClass", "jarURI"):
            if name in self._doc.file.document.data["spec"]["job"]:
                self._doc.note("app", (*SPEC, "job", name), words)
                break
        else:
            self._doc.note("app", (*SPEC, "job"), words)
        if job.args:
            self._doc.note("app", (*SPEC, "job", "args"), "an app has no arguments: move them to the app or to spec.parameters")

    def _about_the_job(self) -> None:
        job, document = self._doc.spec.job, self._doc.file.document
        if "upgradeMode" not in document.data["spec"]["job"]:
            self._doc.note("upgradeMode", (), "not set: the operator's default is stateless")
        if job.state == "suspended":
            self._doc.note(
                "upgradeMode", (*SPEC, "job", "state"), "a spec has no state: a deployed job runs until it is removed from its environment"
            )
        if _version(self._doc.spec.flink_version) < (1, 17):
            words = "memory as in Flink 1.20; older releases limit the network memory to 1g by default"
            self._doc.note("executor", (*SPEC, "flinkVersion"), words)
        self._doc.note("metadata", (), _STATE_IS_LEFT)


_NO_JOB_MANAGER = (
    "not stated: the JobManager is that of the whole session cluster. The driver of a session is the sum of its jobs' drivers, here of "
    "Penstock's default"
)
_STATE_IS_LEFT = (
    "Spark cannot read Flink's checkpoints and savepoints: the first run starts with empty state, so let it read enough history"
)


def app_name(name: str, entry_class: str | None, args: list[Any]) -> str:
    """Derives a module name for the app from the Python program of a PyFlink job, the entry class, or the deployment's name.

    Args:
        name: name of the deployment.
        entry_class: ``com.acme.UserCreditJob``.
        args: arguments of the job; those of PyFlink name a module or a file.
    """
    words = [str(arg) for arg in args]
    for option in ("-py", "--python", "-pym", "--pyModule"):
        if option in words[:-1]:
            program = words[words.index(option) + 1]
            return _identifier(program.rpartition("/")[2].removesuffix(".py").rpartition(".")[2], name)
    return _identifier(re.split(r"[.$]", (entry_class or "").strip())[-1], name)


def _identifier(text: str, otherwise: str) -> str:
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", text)
    plain = re.sub(r"[^a-z0-9_]+", "_", snake.lower()).strip("_")[:100]
    identifier = plain if re.match(r"[a-z]", plain) else otherwise.replace("-", "_")
    return f"{identifier}_job" if keyword.iskeyword(identifier) else identifier


def _targets(made: _Made) -> Targets:
    flink = made.flink
    return Targets(
        parallelism=Parallelism(value=flink.parallelism),
        operators=Operators(count=1, counted_from="a FlinkDeployment does not list operators: counted as one"),
        executor=ExecutorTarget(slots=flink.slots, cpu_millicores=flink.task_manager_cpu_millicores, memory_mib=flink.task_manager.pod_mib),
        driver=DriverTarget(cpu_millicores=flink.job_manager_cpu_millicores, memory_mib=flink.job_manager.pod_mib)
        if "driver" in made.document["spec"]
        else DriverTarget(),
        spark_conf=made.document["spec"].get("sparkConf", {}),
        origins=made.origins,
    )


def _version(text: str) -> tuple[int, int]:
    major, minor = text.removeprefix("v").split("_")
    return int(major), int(minor)
