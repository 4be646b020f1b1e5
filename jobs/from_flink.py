"""From a FlinkDeployment to the job spec that replaces it.

A deployment says how large a job is, how it is upgraded and how often it checkpoints; that becomes the spec. What the job does stands in
its jar, so the spec names an app that its author has to write. All that has no counterpart becomes a comment, none of it is dropped.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict

from jobs.document import Path_, dotted, shown
from jobs.errors import BadValue, Contradiction, MissingField
from jobs.flink_deployment import CONFIGURATION, SPEC, DeploymentFile, JobManager, TaskManager, load
from jobs.flink_leftovers import leftovers
from jobs.spec import StreamingJob
from jobs.spec_text import LEFTOVER, Note, cores_text, duration_text, spec_text
from sizing.errors import PenstockError, raise_all
from sizing.flink.errors import BadFlinkSetting
from sizing.flink.job import FlinkJob
from sizing.flink.memory import JOB_MANAGER, TASK_MANAGER, JobManagerMemory, TaskManagerMemory, job_manager_memory, task_manager_memory
from sizing.flink.parallelism import max_parallelism, task_managers
from sizing.flink.values import boolean, cores, duration_ms, resource_memory_bytes, whole_number
from sizing.targets import MAX_PARALLELISM, DriverTarget, ExecutorTarget, Operators, Origin, Parallelism, Targets
from sizing.units import MAX_CPU_MILLICORES, MIB, NotAQuantity, cpu_text, memory_mib

# Source: flink-kubernetes-operator, FlinkConfigBuilder.DEFAULT_CHECKPOINTING_INTERVAL, for last-state.
OPERATORS_CHECKPOINT_INTERVAL_MS = 300_000
# Source: the bound of jobs.spec.Executor.slots.
MAX_SLOTS = 1024

_INCREMENTAL = ("execution.checkpointing.incremental", "state.backend.incremental")
_BACKEND = ("state.backend.type", "state.backend")
_INTERVAL = "execution.checkpointing.interval"
_SLOTS = "taskmanager.numberOfTaskSlots"
_OVERRIDES = "pipeline.jobvertex-parallelism-overrides"
# Flink's words for its state backends, and older ones; a class is known by its name's ending.
_BACKENDS = {"rocksdb": "rocksdb", "hashmap": "hashmap", "filesystem": "hashmap", "jobmanager": "hashmap"}

Value = TypeVar("Value")


class Conversion(BaseModel):
    """What a FlinkDeployment becomes.

    Args:
        text: the job spec as YAML with comments.
        document: the same spec as plain data.
        job: the same spec as a model.
        flink: the job as Flink sizes it.
        targets: what sizing takes, with the lines of the deployment.
        notes: in the order of the spec, what has no counterpart last.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    document: dict[str, Any]
    job: StreamingJob
    flink: FlinkJob
    targets: Targets
    notes: tuple[Note, ...]


def convert(path: Path) -> Conversion:
    """Reads a FlinkDeployment and makes the job spec of it.

    Raises:
        PenstockError: as `jobs.flink_deployment.load`, and SPEC-005 to SPEC-008 and SIZ-055 to SIZ-057 for what Flink or its operator would
            refuse; several come as `Faults`.
    """
    return conversion(load(path))


def conversion(file: DeploymentFile) -> Conversion:
    """The job spec of a FlinkDeployment; errors as `convert`."""
    made = _Maker(file).make()
    left = [
        Note(field=LEFTOVER, path=dotted(path), line=_line(file, path), given=given, text=words) for path, given, words in leftovers(file)
    ]
    notes = (*made.notes, *sorted(left, key=lambda note: note.line or 0))
    head = f"The job spec that replaces the FlinkDeployment {made.flink.name}. Sources and sinks are still to be written."
    return Conversion(
        text=spec_text(head, made.document, notes),
        document=made.document,
        job=StreamingJob.model_validate(made.document),
        flink=made.flink,
        targets=_targets(made),
        notes=notes,
    )


class _Pod(NamedTuple):
    """A kind of pod as Flink starts it."""

    memory: Any
    memory_text: str
    cpu_millicores: int
    limit_millicores: int


class _Made(NamedTuple):
    document: dict[str, Any]
    flink: FlinkJob
    notes: tuple[Note, ...]
    origins: dict[str, Origin]


class _Maker:
    """Reads the deployment field by field; faults and notes gather on the way."""

    def __init__(self, file: DeploymentFile) -> None:
        self._file = file
        self._spec = file.deployment.spec
        self._notes: list[Note] = []
        self._faults: list[PenstockError] = []
        self._paths: dict[str, Path_] = {}

    def make(self) -> _Made:
        """The spec's values, the job as Flink has it, the notes, and where each number came from.

        Raises:
            PenstockError: all the faults of the deployment at once.
        """
        slots = self._slots()
        parallelism = self._parallelism(slots)
        task_pod = self._task_manager(slots)
        job_pod = self._job_manager()
        interval_ms = self._interval_ms()
        backend, state = self._state()
        most = self._max_parallelism(parallelism)
        raise_all(sorted(self._faults, key=lambda fault: (fault.at.line or 0) if fault.at else 0))
        assert task_pod is not None and job_pod is not None
        self._about_the_app()
        self._about_the_job()
        flink = FlinkJob(
            name=self._file.deployment.metadata.name,
            parallelism=parallelism,
            slots=slots,
            task_managers=task_managers(parallelism, slots),
            task_manager=task_pod.memory,
            task_manager_cpu_millicores=task_pod.cpu_millicores,
            task_manager_cpu_limit_millicores=task_pod.limit_millicores,
            job_managers=(self._spec.job_manager or JobManager()).replicas or 1,
            job_manager=job_pod.memory,
            job_manager_cpu_millicores=job_pod.cpu_millicores,
            job_manager_cpu_limit_millicores=job_pod.limit_millicores,
            state_backend=backend,
            checkpoint_interval_ms=interval_ms,
            max_parallelism=most,
        )
        return _Made(self._document(flink, task_pod, job_pod, state), flink, tuple(self._notes), self._origins())

    def _document(self, flink: FlinkJob, task_pod: _Pod, job_pod: _Pod, state: dict[str, Any]) -> dict[str, Any]:
        trigger = {} if flink.checkpoint_interval_ms is None else {"trigger": duration_text(flink.checkpoint_interval_ms)}
        spec = {
            "app": app_name(flink.name, self._spec.job.entry_class, self._spec.job.args or []),
            "parallelism": flink.parallelism,
            "upgradeMode": self._spec.job.upgrade_mode,
            "executor": {"slots": flink.slots, "cores": cores_text(task_pod.cpu_millicores), "memory": task_pod.memory_text},
            "driver": {"cores": cores_text(job_pod.cpu_millicores), "memory": job_pod.memory_text},
            **trigger,
            "state": state,
        }
        return {"apiVersion": "penstock/v1", "kind": "StreamingJob", "metadata": {"name": flink.name}, "spec": spec}

    def _slots(self) -> int:
        slots = self._read(_SLOTS, whole_number, 1)
        self._paths["executor.slots"] = self._file.places.get(_SLOTS, CONFIGURATION)
        if slots > MAX_SLOTS:
            self._fault(BadValue(need=f"at most {MAX_SLOTS} slots", fix="mend the number"), self._file.places[_SLOTS])
        if _SLOTS not in self._file.places:
            self._note("executor", (), f"{_SLOTS} is not given: Flink's default is 1 slot")
        return min(slots, MAX_SLOTS)

    def _parallelism(self, slots: int) -> int:
        """The operator's order: the replicas of the TaskManagers, the autoscaler's overrides, the job's own."""
        job, replicas = self._spec.job, (self._spec.task_manager or TaskManager()).replicas
        self._note(
            "parallelism", (), "a parallelism in the Flink job's code (env.setParallelism) wins over this one: if it has one, write that"
        )
        at: Path_ = (*SPEC, "job", "parallelism")
        parallelism = job.parallelism
        if replicas is not None:
            at, parallelism = (*SPEC, "taskManager", "replicas"), replicas * slots
            self._note("parallelism", at, f"{replicas} TaskManagers x {slots} slots; the operator then takes no notice of job.parallelism")
        elif overrides := self._overrides():
            at, parallelism = self._file.places[_OVERRIDES], max(overrides)
            self._note("parallelism", at, "the largest of the autoscaler's parallelisms, which the operator takes before job.parallelism")
        self._paths["parallelism"] = at
        if parallelism > MAX_PARALLELISM:
            self._fault(BadValue(need=f"a parallelism of at most {MAX_PARALLELISM}; this makes {parallelism}", fix="mend the number"), at)
        elif parallelism < 1:
            self._missing_parallelism(at)
        if "parallelism.default" in self._file.places:
            self._note("parallelism", self._file.places["parallelism.default"], "the operator writes the job's parallelism over it")
        return min(max(1, parallelism), MAX_PARALLELISM)

    def _missing_parallelism(self, at: Path_) -> None:
        default = self._file.configuration.get("parallelism.default", "1")
        need = "job.parallelism of at least 1, as the operator asks; it takes no notice of parallelism.default"
        self._fault(MissingField(need=need, fix=f"parallelism: {shown(default).strip(chr(34))}"), at)

    def _overrides(self) -> list[int]:
        """The parallelism of each vertex, from ``vertex:4,vertex:8``."""
        text = self._file.configuration.get(_OVERRIDES, "")
        numbers = [part.rpartition(":")[2].strip() for part in re.split(r"[,\n]", text.strip().strip("{}")) if part.strip()]
        try:
            return [whole_number(number.strip("\"' ")) for number in numbers]
        except NotAQuantity as fault:
            self._fault(BadFlinkSetting(need=f"vertex:parallelism pairs, {fault.need} each", fix=fault.fix), self._file.places[_OVERRIDES])
            return []

    def _task_manager(self, slots: int) -> _Pod | None:
        manager = self._spec.task_manager or TaskManager()
        cpu = self._cpu("taskManager", manager, "taskmanager", default=slots)
        found = self._memory("taskManager", manager, TASK_MANAGER, task_manager_memory)
        return self._pod("executor", found, cpu) if found else None

    def _job_manager(self) -> _Pod | None:
        manager = self._spec.job_manager or JobManager()
        if manager.replicas is not None and manager.replicas > 1:
            at = (*SPEC, "jobManager", "replicas")
            self._note("driver", at, "one driver runs and none stands by; Kubernetes starts it again, and it goes on from the last commit")
        # Source: Flink 1.20.3, kubernetes.jobmanager.cpu.amount defaults to 1.0.
        cpu = self._cpu("jobManager", manager, "jobmanager", default=1)
        found = self._memory("jobManager", manager, JOB_MANAGER, job_manager_memory)
        return self._pod("driver", found, cpu) if found else None

    def _pod(self, field: str, memory: TaskManagerMemory | JobManagerMemory, cpu: tuple[int, int]) -> _Pod:
        if memory.process_bytes % MIB:
            self._note(
                field, self._paths[f"{field}.memory_mib"], f"{memory.process_bytes} bytes; Flink's pod too asks for whole MiB, rounded down"
            )
        if cpu[1] != cpu[0] or field == "executor":
            words = f"Flink limits the CPU of its pods, here to {cpu_text(cpu[1])}; Spark sets no limit unless sparkConf has"
            self._note(field, (), f"{words} spark.kubernetes.{field}.limit.cores")
        return _Pod(memory, self._memory_text(field, memory.pod_mib), *cpu)

    def _memory(self, kind: str, manager: TaskManager | JobManager, prefix: str, model: Callable[[dict[str, str]], Value]) -> Value | None:
        """The memory of a kind of process: the pod's from its resource, all else from the configuration."""
        total = f"{prefix}.process.size"
        field = "executor" if kind == "taskManager" else "driver"
        settings, text, path = dict(self._file.configuration), *self._resource(kind, manager, "memory")
        self._paths[f"{field}.memory_mib"] = path
        if text is not None:
            if total in settings:
                self._note(field, self._file.places[total], f"the operator writes {dotted(path)} over it")
            try:
                settings[total] = f"{resource_memory_bytes(text)}b"
            except NotAQuantity as fault:
                self._fault(BadFlinkSetting(need=fault.need, fix=fault.fix), path)
                return None
        else:
            # The total of the process, or what Flink derives it from.
            given = [f"{prefix}.{name}.size" for name in ("process", "flink", "task.heap", "heap")]
            self._paths[f"{field}.memory_mib"] = next((self._file.places[key] for key in given if key in self._file.places), path)
        try:
            return model(settings)
        except PenstockError as fault:
            at = path if text is not None and fault.path == total else self._file.places.get(fault.path, path)
            fault.path = fault.given = ""
            self._fault(fault, at)
            return None

    def _older_resource(self, kind: str, field: str, manager: TaskManager | JobManager) -> None:
        """Says that the operator's own resource does not count where Kubernetes' is given."""
        if manager.resource and manager.resources and (manager.resources.requests or manager.resources.limits):
            self._note(field, (*SPEC, kind, "resource"), f"the operator takes {kind}.resources before it")

    def _resource(self, kind: str, manager: TaskManager | JobManager, name: str) -> tuple[str | None, Path_]:
        """Memory or CPU as the deployment gives it: Kubernetes' own resources before the operator's, requests before limits."""
        resources = manager.resources
        for among, values in (("requests", resources and resources.requests), ("limits", resources and resources.limits)):
            if values and name in values:
                return str(values[name]), (*SPEC, kind, "resources", among, name)
        path: Path_ = (*SPEC, kind, "resource", name)
        if resources and (resources.requests or resources.limits):
            return None, path
        value = getattr(manager.resource, name, None)
        # As the document has it: 1, not the model's 1.0.
        return (None if value is None else str(value).removesuffix(".0")), path

    def _cpu(self, kind: str, manager: TaskManager | JobManager, prefix: str, default: int) -> tuple[int, int]:
        """Request and limit of a pod's CPU in millicores, rounded up as Kubernetes does."""
        field = "executor" if kind == "taskManager" else "driver"
        self._older_resource(kind, field, manager)
        text, path = self._winning_cpu(kind, field, manager, prefix)
        amount = float(default)
        self._paths[f"{field}.cpu_millicores"] = path
        if text is not None:
            amount = self._parsed(text, _kubernetes_cores, path, amount)
        factor = self._read(f"kubernetes.{prefix}.cpu.limit-factor", cores, 1.0)
        millicores = _millicores(amount)
        limit = self._limit(manager, millicores, factor)
        if Fraction(str(amount)) * 1000 != millicores:
            self._note(field, path, "rounded up to a whole millicore, as Kubernetes does")
        return millicores, limit

    def _winning_cpu(self, kind: str, field: str, manager: TaskManager | JobManager, prefix: str) -> tuple[str | None, Path_]:
        """Flink's own key wins over the operator's field, which wins over the keys that the operator writes it to."""
        text, path = self._resource(kind, manager, "cpu")
        first = ["taskmanager.cpu.cores"] if kind == "taskManager" else []
        last = [f"kubernetes.{prefix}.cpu.amount", f"kubernetes.{prefix}.cpu"]
        given = [(self._file.configuration[key], self._file.places[key]) for key in first if key in self._file.places]
        given += [(text, path)] if text is not None else []
        given += [(self._file.configuration[key], self._file.places[key]) for key in last if key in self._file.places]
        for _, place in given[1:]:
            self._note(field, place, f"{dotted(given[0][1])} wins over it")
        return given[0] if given else (None, path)

    def _limit(self, manager: TaskManager | JobManager, millicores: int, factor: float) -> int:
        limits = (manager.resources.limits if manager.resources else None) or {}
        if "cpu" in limits:
            kind = "taskManager" if isinstance(manager, TaskManager) else "jobManager"
            return _millicores(
                self._parsed(str(limits["cpu"]), _kubernetes_cores, (*SPEC, kind, "resources", "limits", "cpu"), millicores / 1000)
            )
        return max(millicores, _millicores(millicores / 1000 * factor))

    def _interval_ms(self) -> int | None:
        interval_ms = self._read(_INTERVAL, duration_ms, 0)
        path = self._file.places.get(_INTERVAL)
        if path:
            words = (
                "the checkpoint interval: Spark commits a checkpoint with each micro-batch"
                if interval_ms
                else "no checkpoints by configuration"
            )
            self._note("trigger", path, f"{words}; a shorter trigger gives fresher results, for more objects written")
            return interval_ms or None
        if self._spec.job.upgrade_mode == "last-state":
            self._note(
                "trigger",
                (),
                "the operator's checkpoint interval for last-state where none is given; a shorter trigger gives fresher results",
            )
            return OPERATORS_CHECKPOINT_INTERVAL_MS
        self._note("trigger", (), f"{_INTERVAL} is not given, so the trigger is Penstock's default of 10s; the job's code may set one")
        return None

    def _state(self) -> tuple[Any, dict[str, Any]]:
        key = next((key for key in _BACKEND if key in self._file.places), None)
        incremental = next((self._read(key, boolean, False) for key in _INCREMENTAL if key in self._file.places), False)
        if key is None:
            self._note("state", (), "no state backend is given: Flink's default is hashmap, on the heap; its code may set another")
            return "hashmap", {"backend": "memory", "incremental": False}
        name = self._file.configuration[key].strip()
        backend = _BACKENDS.get(name.lower()) or (
            "rocksdb" if "rocksdb" in name.lower() else "hashmap" if "hashmap" in name.lower() else "other"
        )
        if backend == "hashmap":
            self._note(
                "state", self._file.places[key], "on the JVM's heap in both; Spark keeps each version of the state that it may go back to"
            )
            return "hashmap", {"backend": "memory", "incremental": False}
        bounded = "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage"
        words = f"RocksDB's native memory lies in the pod's overhead, unbounded unless sparkConf has {bounded}"
        self._note(
            "state",
            self._file.places[key],
            words if backend == "rocksdb" else f"no backend that Spark has; rocksdb is the nearest. {words}",
        )
        return backend, {"backend": "rocksdb", "incremental": incremental}

    def _max_parallelism(self, parallelism: int) -> int:
        most = self._read("pipeline.max-parallelism", whole_number, max_parallelism(parallelism))
        if "pipeline.max-parallelism" in self._file.places:
            at = self._file.places["pipeline.max-parallelism"]
            self._note("parallelism", at, "in Spark the shuffle partitions of the first run bound the spread of the state")
            if not parallelism <= most <= MAX_PARALLELISM:
                self._fault(Contradiction(need=f"from the parallelism, {parallelism}, to {MAX_PARALLELISM}", fix="mend the number"), at)
        return most

    def _about_the_app(self) -> None:
        job = self._spec.job
        what = " of ".join(shown(part) for part in (job.entry_class, job.jar_uri) if part) or "the Flink job's jar"
        words = f"a Python module that has yet to be written: it declares the sources, queries and sinks that {what} has in its code"
        for name in ("entryClass", "jarURI"):
            if name in self._file.document.data["spec"]["job"]:
                self._note("app", (*SPEC, "job", name), words)
                break
        else:
            self._note("app", (*SPEC, "job"), words)
        if job.args:
            self._note("app", (*SPEC, "job", "args"), "an app gets no arguments: what they say goes into the app or the spec")

    def _about_the_job(self) -> None:
        job, document = self._spec.job, self._file.document
        if "upgradeMode" not in document.data["spec"]["job"]:
            self._note("upgradeMode", (), "not given: the operator's default is stateless")
        if job.state == "suspended":
            self._note("upgradeMode", (*SPEC, "job", "state"), "a spec has no state: a job runs from its deployment until `penstock stop`")
        if _version(self._spec.flink_version) < (1, 17):
            words = "the memory here is that of Flink 1.20; older releases bound the network memory to 1g unless told otherwise"
            self._note("executor", (*SPEC, "flinkVersion"), words)
        self._note("metadata", (), _STATE_IS_LEFT)

    def _memory_text(self, field: str, pod_mib: int) -> str:
        """The memory as the user wrote it where a spec can be written so, else in g or m."""
        given = self._file.document.given(self._paths[f"{field}.memory_mib"]).strip('"')
        try:
            if memory_mib(given) == pod_mib:
                return given
        except NotAQuantity:
            pass
        return f"{pod_mib // 1024}g" if pod_mib % 1024 == 0 else f"{pod_mib}m"

    def _read(self, key: str, parse: Callable[[str], Value], default: Value) -> Value:
        if key not in self._file.places:
            return default
        return self._parsed(self._file.configuration[key], parse, self._file.places[key], default)

    def _parsed(self, text: str, parse: Callable[[str], Value], path: Path_, default: Value) -> Value:
        try:
            return parse(text)
        except NotAQuantity as fault:
            self._fault(BadFlinkSetting(need=fault.need, fix=fault.fix), path)
            return default

    def _fault(self, error: PenstockError, path: Path_) -> None:
        self._faults.append(self._file.document.locate(error, path))

    def _note(self, field: str, path: Path_, text: str) -> None:
        given = self._file.document.given(path) if path else ""
        line = _line(self._file, path) if path else None
        self._notes.append(Note(field=field, path=dotted(path), line=line, given=given, text=text))

    def _origins(self) -> dict[str, Origin]:
        document = self._file.document
        return {
            field: Origin(at=document.place(path), path=dotted(path), given=document.given(path)) for field, path in self._paths.items()
        }


_STATE_IS_LEFT = (
    "Flink's checkpoints and savepoints can't be read by Spark: the first run starts with empty state, so let it read enough of the past"
)


def app_name(name: str, entry_class: str | None, args: list[Any]) -> str:
    """A module's name for the app: from the Python program of a PyFlink job, the entry class, or the deployment's name.

    Args:
        name: of the deployment.
        entry_class: ``com.acme.UserCreditJob``.
        args: of the job; those of PyFlink name a module or a file.
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
    found = plain if re.match(r"[a-z]", plain) else otherwise.replace("-", "_")
    return f"{found}_job" if keyword.iskeyword(found) else found


def _targets(made: _Made) -> Targets:
    flink = made.flink
    return Targets(
        parallelism=Parallelism(value=flink.parallelism),
        operators=Operators(count=1, counted_from="a FlinkDeployment names no operators: counted as one"),
        executor=ExecutorTarget(slots=flink.slots, cpu_millicores=flink.task_manager_cpu_millicores, memory_mib=flink.task_manager.pod_mib),
        driver=DriverTarget(cpu_millicores=flink.job_manager_cpu_millicores, memory_mib=flink.job_manager.pod_mib),
        origins=made.origins,
    )


def _millicores(amount: float) -> int:
    millicores = -(-Fraction(str(amount)) * 1000 // 1)
    return min(max(1, int(millicores)), MAX_CPU_MILLICORES)


def _kubernetes_cores(text: str) -> float:
    """``1``, ``0.5``, and ``500m``, which Kubernetes' own resources may have."""
    return cores(str(whole_number(text.strip()[:-1]) / 1000)) if text.strip().endswith("m") else cores(text)


def _version(text: str) -> tuple[int, int]:
    major, minor = text.removeprefix("v").split("_")
    return int(major), int(minor)


def _line(file: DeploymentFile, path: Path_) -> int | None:
    return file.document.place(path).line
