"""Targets: the complete input of sizing, independent of its origin except for places.

`penstock.jobs.targets` creates them from a job spec; a program can create them directly.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from penstock.sizing.errors import PenstockError, Place
from penstock.sizing.executor_spread import ExecutorSpread
from penstock.sizing.file_splits import FilesInput
from penstock.sizing.load.load import Load
from penstock.sizing.python_workers import PythonUse
from penstock.sizing.violation import Violation

Error = TypeVar("Error", bound=PenstockError)

# Flink's own upper bound (KeyGroupRangeAssignment.UPPER_BOUND_MAX_PARALLELISM), so that any Flink job can be compared with its plan.
MAX_PARALLELISM = 32_768


class _Target(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class Origin(_Target):
    """The place of a target in the user's document, for errors.

    Args:
        at: file and line.
        path: the field, as named in that document (``spec.executor.slots``).
        given: the value in that document.
    """

    at: Place
    path: str
    given: str


class Parallelism(_Target):
    """The number of concurrent tasks of a stage.

    Args:
        value: 1 to `MAX_PARALLELISM`.
        source: ``spec``, ``environment`` if that overrides the spec, ``load`` if it is derived from the load, or ``code`` if the app's
            PARALLELISM took precedence.
        at: place of the app's PARALLELISM, for a note that it takes precedence over the load.
    """

    value: Annotated[int, Field(ge=1, le=MAX_PARALLELISM)]
    source: Literal["spec", "environment", "code", "load"] = "spec"
    at: Place | None = None


class Operators(_Target):
    """The operators of the app, as Flink counts them.

    Args:
        count: 1 or more.
        names: names of the operators, if the app defines them.
        counted_from: how they were counted, for the explanation.
    """

    count: Annotated[int, Field(ge=1)]
    names: tuple[str, ...] = ()
    counted_from: str = "as specified"


class PythonOperators(_Target):
    """The Python operators of a job, each with worker processes of its own.

    Args:
        uses: what each of them runs; by default one keyed function, which takes the most.
        counted_from: how they were counted, for the explanation.
    """

    uses: tuple[PythonUse, ...] = ("keyed",)
    counted_from: str = "not known: a keyed function is assumed"


class ExecutorTarget(_Target):
    """One executor, with at most one of memory and heap; without both, its heap and overhead are undecided and derived from the load.

    Args:
        slots: ``spark.executor.cores``; None: from sparkConf, otherwise the whole cores, at least 1.
        cpu_millicores: CPU request of the pod; None: from sparkConf, otherwise one core per slot.
        memory_mib: memory of the pod, overhead included.
        heap_mib: ``spark.executor.memory``; the pod then has the size that Spark computes.
        storage_mib: ephemeral storage of the pod, request and limit; None: as the plan computes it.
        spread: over nodes and zones; None: not spread.
    """

    slots: Annotated[int, Field(ge=1)] | None = None
    cpu_millicores: Annotated[int, Field(ge=1)] | None = None
    memory_mib: Annotated[int, Field(ge=1)] | None = None
    heap_mib: Annotated[int, Field(ge=1)] | None = None
    storage_mib: Annotated[int, Field(ge=1)] | None = None
    spread: ExecutorSpread | None = None

    @model_validator(mode="after")
    def _one_memory(self) -> Self:
        if self.memory_mib is not None and self.heap_mib is not None:
            raise ValueError("at most one of memory_mib and heap_mib")
        return self

    @property
    def undecided(self) -> bool:
        """Whether its memory is derived from the load."""
        return self.memory_mib is None and self.heap_mib is None


class DriverTarget(_Target):
    """The driver, with at most one of memory and heap; None: from sparkConf, otherwise the defaults of `penstock.sizing.spark_pods`.

    Its `storage_mib` is as that of an executor.
    """

    cpu_millicores: Annotated[int, Field(ge=1)] | None = None
    memory_mib: Annotated[int, Field(ge=1)] | None = None
    heap_mib: Annotated[int, Field(ge=1)] | None = None
    storage_mib: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _one_memory(self) -> Self:
        if self.memory_mib is not None and self.heap_mib is not None:
            raise ValueError("at most one of memory_mib and heap_mib")
        return self


class StageTasks(_Target):
    """Tasks of each kind of stage, where they differ from the parallelism.

    Args:
        source: topic -> minimum number of tasks that read it; a topic with more partitions has one task per partition.
        reading: tasks that read all topics of a source; None: the parallelism.
        stateless: tasks after a repartition between the read and the first stateful operator; None: no repartition.
        stateful: tasks after a shuffle, also a setting of Spark; None: the parallelism.
    """

    source: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    reading: Annotated[int, Field(ge=1)] | None = None
    stateless: Annotated[int, Field(ge=1)] | None = None
    stateful: Annotated[int, Field(ge=1)] | None = None

    @property
    def by_kind(self) -> dict[str, int | None]:
        """Kind of stage, as named in a spec -> its tasks; None: the parallelism."""
        return {"source": self.reading, "stateless": self.stateless, "stateful": self.stateful}

    def slots(self, parallelism: int) -> int:
        """Concurrent tasks of the largest stage.

        Args:
            parallelism: of the stages without a value.
        """
        return max(parallelism if tasks is None else tasks for tasks in self.by_kind.values())


class Targets(_Target):
    """The input of a plan.

    Args:
        parallelism: concurrent tasks of a stage; None: undecided, derived from the load.
        operators: for Flink's count of subtasks.
        executor: one executor.
        driver: the driver.
        spark_conf: Spark settings as text, in Spark's syntax.
        source_topics: topic -> requested partitions; None: decided by the plan.
        sink_topics: topic -> partitions.
        files: source of files -> the files that it reads; None: not known, and their read is not planned.
        stages: tasks of the stages that differ from the parallelism; those after a shuffle are in `spark_conf`.
        load: load of the job, if known.
        trigger_s: trigger interval; None: one bounded run.
        limited_reads: whether each Kafka source limits its micro-batches itself.
        stateful_operators: one entry per operator of the app; a stream-stream join has more stores than others.
        python: operators that run in Python workers.
        queries: queries of the app; each may read all topics, and has a checkpoint of its own.
        state_backend: where the state is kept; None: decided by the plan.
        state_incremental: RocksDB's changelog checkpointing.
        has_app: whether the app was found; otherwise its operators are unknown.
        notes: sentences to include in the plan's notes, such as which of two numbers took precedence.
        origins: field of the targets (``executor.slots``, ``spark_conf.spark.executor.cores``) -> its place.
    """

    parallelism: Parallelism | None = None
    operators: Operators = Operators(count=1)
    executor: ExecutorTarget
    driver: DriverTarget = DriverTarget()
    spark_conf: dict[str, str] = Field(default_factory=dict)
    source_topics: dict[str, Annotated[int, Field(ge=1)] | None] = Field(default_factory=dict)
    sink_topics: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    files: dict[str, FilesInput | None] = Field(default_factory=dict)
    stages: StageTasks = StageTasks()
    load: Load | None = None
    trigger_s: Annotated[float, Field(gt=0)] | None = 10.0
    limited_reads: bool = False
    stateful_operators: tuple[Literal["join", "other"], ...] = ()
    python: PythonOperators = PythonOperators()
    queries: Annotated[int, Field(ge=1)] = 1
    state_backend: Literal["memory", "rocksdb"] | None = None
    state_incremental: bool = True
    has_app: bool = True
    notes: tuple[str, ...] = ()
    origins: dict[str, Origin] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _load_decides(self) -> Self:
        if self.load is None and (self.parallelism is None or self.executor.undecided):
            raise ValueError("a parallelism and one of memory_mib and heap_mib of the executor, or a load that decides them")
        return self

    def locate(self, error: Error, field: str) -> Error:
        """The error with the place, path and value of a field of the targets in the user's document, if known."""
        origin = self.origins.get(field)
        if origin is None:
            error.path = error.path or field
            return error
        error.at, error.path, error.given = origin.at, origin.path, origin.given or error.given
        return error

    def located(self, violation: Violation, field: str) -> Violation:
        """The violation with the place, path and value of a field, as `locate` does for an error."""
        origin = self.origins.get(field)
        if origin is None:
            return violation.moved(path=violation.path or field)
        return violation.moved(origin.at, path=origin.path, given=origin.given or violation.given)


class DecidedTargets(Targets):
    """Targets without undecided values; created by `penstock.sizing.plan.decided`.

    Args:
        parallelism: as requested or derived from the load, and at least the tasks of the largest stage.
        memory_from_load: whether the executor's heap and overhead are derived from the load.
    """

    parallelism: Parallelism
    memory_from_load: bool = False
