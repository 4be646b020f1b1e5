"""Targets: all that sizing takes, and nothing of where it came from but its place.

`penstock.jobs.targets` makes them from a job spec; a program can make them itself.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from penstock.sizing.errors import PenstockError, Place
from penstock.sizing.load.load import Load
from penstock.sizing.violation import Violation

Error = TypeVar("Error", bound=PenstockError)

# Flink's own upper bound (KeyGroupRangeAssignment.UPPER_BOUND_MAX_PARALLELISM): what runs there can be compared with what runs here.
MAX_PARALLELISM = 32_768


class _Target(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class Origin(_Target):
    """Where a target stands in the document that a person wrote; errors name it.

    Args:
        at: file and line.
        path: the field as that document calls it (``spec.executor.slots``).
        given: the value as it stands there.
    """

    at: Place
    path: str
    given: str


class Parallelism(_Target):
    """How many tasks of a stage shall run at the same time.

    Args:
        value: 1 to `MAX_PARALLELISM`.
        source: ``spec``, ``load`` where it follows from the load, or ``code`` where the app's own PARALLELISM won.
        at: where the app's PARALLELISM stands, for a note that it wins over the load.
    """

    value: Annotated[int, Field(ge=1, le=MAX_PARALLELISM)]
    source: Literal["spec", "code", "load"] = "spec"
    at: Place | None = None


class Operators(_Target):
    """The operators of the app, as Flink counts them.

    Args:
        count: 1 or more.
        names: of the operators, where the app gives them.
        counted_from: in words, for the explanation.
    """

    count: Annotated[int, Field(ge=1)]
    names: tuple[str, ...] = ()
    counted_from: str = "as specified"


class ExecutorTarget(_Target):
    """One executor, at most one of memory and heap; without both its heap and its overhead are undecided and follow from the load.

    Args:
        slots: ``spark.executor.cores``; None takes it from sparkConf, else the whole cores, at least 1.
        cpu_millicores: CPU request of the pod; None takes it from sparkConf, else one core a slot.
        memory_mib: of the pod, overhead included.
        heap_mib: ``spark.executor.memory``; the pod is then as large as Spark makes it.
    """

    slots: Annotated[int, Field(ge=1)] | None = None
    cpu_millicores: Annotated[int, Field(ge=1)] | None = None
    memory_mib: Annotated[int, Field(ge=1)] | None = None
    heap_mib: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _one_memory(self) -> Self:
        if self.memory_mib is not None and self.heap_mib is not None:
            raise ValueError("at most one of memory_mib and heap_mib")
        return self

    @property
    def undecided(self) -> bool:
        """Whether its memory follows from the load."""
        return self.memory_mib is None and self.heap_mib is None


class DriverTarget(_Target):
    """The driver, at most one of memory and heap; what is None comes from sparkConf, else from `penstock.sizing.spark_pods`' defaults."""

    cpu_millicores: Annotated[int, Field(ge=1)] | None = None
    memory_mib: Annotated[int, Field(ge=1)] | None = None
    heap_mib: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _one_memory(self) -> Self:
        if self.memory_mib is not None and self.heap_mib is not None:
            raise ValueError("at most one of memory_mib and heap_mib")
        return self


class StageTasks(_Target):
    """Tasks of each kind of stage, where they are not the parallelism.

    Args:
        source: topic -> least tasks that read it; a topic with more partitions has a task for each.
        reading: of a source, all its topics together; None: the parallelism.
        stateless: after the rows were dealt out between the read and the first state; None: they are not dealt out.
        stateful: after a shuffle, which a setting of Spark says too; None: the parallelism.
    """

    source: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    reading: Annotated[int, Field(ge=1)] | None = None
    stateless: Annotated[int, Field(ge=1)] | None = None
    stateful: Annotated[int, Field(ge=1)] | None = None

    @property
    def by_kind(self) -> dict[str, int | None]:
        """Kind of stage, as a spec calls it -> its tasks; None: the parallelism."""
        return {"source": self.reading, "stateless": self.stateless, "stateful": self.stateful}

    def slots(self, parallelism: int) -> int:
        """Tasks at a time of the stage that has the most.

        Args:
            parallelism: of the stages that are not given.
        """
        return max(parallelism if tasks is None else tasks for tasks in self.by_kind.values())


class Targets(_Target):
    """What a plan is made from.

    Args:
        parallelism: tasks of a stage at the same time; None: undecided, it follows from the load.
        operators: for Flink's count of subtasks.
        executor: one executor.
        driver: the driver.
        spark_conf: Spark settings as text, as Spark reads them.
        source_topics: topic -> partitions asked for; None leaves them to the plan.
        sink_topics: topic -> partitions.
        stages: tasks of the stages that are not the parallelism; what is after a shuffle stands in `spark_conf`.
        load: what the job has to process, where that is known.
        trigger_s: from one micro-batch to the next; None: one bounded run.
        stateful_operators: one entry for each that the app has; a stream-stream join has more stores than others.
        state_backend: where the state is kept; None leaves it to the plan.
        state_incremental: RocksDB's changelog.
        notes: sentences that the plan shall carry on to the reader, such as which of two numbers won.
        origins: field of the targets (``executor.slots``, ``spark_conf.spark.executor.cores``) -> where it stands.
    """

    parallelism: Parallelism | None = None
    operators: Operators = Operators(count=1)
    executor: ExecutorTarget
    driver: DriverTarget = DriverTarget()
    spark_conf: dict[str, str] = Field(default_factory=dict)
    source_topics: dict[str, Annotated[int, Field(ge=1)] | None] = Field(default_factory=dict)
    sink_topics: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    stages: StageTasks = StageTasks()
    load: Load | None = None
    trigger_s: Annotated[float, Field(gt=0)] | None = 10.0
    stateful_operators: tuple[Literal["join", "other"], ...] = ()
    state_backend: Literal["memory", "rocksdb"] | None = None
    state_incremental: bool = True
    notes: tuple[str, ...] = ()
    origins: dict[str, Origin] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _load_decides(self) -> Self:
        if self.load is None and (self.parallelism is None or self.executor.undecided):
            raise ValueError("a parallelism and one of memory_mib and heap_mib of the executor, or a load that decides them")
        return self

    def locate(self, error: Error, field: str) -> Error:
        """The error with the place, path and value of a field of the targets, as they stand in the user's document where there is one."""
        origin = self.origins.get(field)
        if origin is None:
            error.path = error.path or field
            return error
        error.at, error.path, error.given = origin.at, origin.path, origin.given or error.given
        return error

    def located(self, violation: Violation, field: str) -> Violation:
        """The violation with the place, path and value of a field, as `locate` gives them to an error."""
        origin = self.origins.get(field)
        if origin is None:
            return violation.moved(path=violation.path or field)
        return violation.moved(origin.at, path=origin.path, given=origin.given or violation.given)


class DecidedTargets(Targets):
    """Targets of which the load decides nothing any more; `penstock.sizing.plan.decided` makes them.

    Args:
        parallelism: as asked or as the load takes it, and no less than any stage has tasks.
        memory_from_load: whether the executor's heap and overhead follow from the load.
    """

    parallelism: Parallelism
    memory_from_load: bool = False
