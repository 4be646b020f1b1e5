"""Resources of a job: executors, driver, state and the load that they are derived from."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from penstock.jobs.spec.part import DurationMs, MemoryMib, Millicores, Part, exactly_one
from penstock.sizing.executor_spread import Spreading

# /tmp, the working directory and the logs of a container take more than 1 GiB, before Spark writes anything.
EphemeralStorageMib = Annotated[MemoryMib, Field(ge=2048)]
# Beside the spec or below its folder.
PROFILE_PATTERN = r"^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*\.(json|yaml|yml)$"


class Spread(Part):
    """How the executors of a job are spread; at least one of the two.

    Args:
        nodes: one executor of the job on each node.
        zones: as many executors of the job in each zone, give or take one.
    """

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    nodes: Spreading | None = None
    zones: Spreading | None = None

    @model_validator(mode="after")
    def _any(self) -> Self:
        if self.nodes is None and self.zones is None:
            raise ValueError("at least one of nodes and zones")
        return self


class Executor(Part):
    """Resources of an executor.

    Args:
        slots: task slots, as in Flink (``spark.executor.cores``); by default the whole cores, at least 1.
        cores: CPU request of the pod in millicores; by default one core per slot.
        memory: memory of the pod in MiB, overhead included, like Flink's process size; with a load both this and `heap` are optional.
        heap: ``spark.executor.memory`` in MiB as an alternative; Spark then determines the memory of the pod.
        ephemeral_storage: request and limit of the pod in MiB; by default what the plan computes.
        spread: over nodes and zones; by default Karpenter and Kubernetes put as many on a node as fit.
    """

    slots: Annotated[int, Field(ge=1, le=1024)] | None = None
    cores: Millicores | None = None
    memory: MemoryMib | None = None
    heap: MemoryMib | None = None
    ephemeral_storage: EphemeralStorageMib | None = None
    spread: Spread | None = None

    @model_validator(mode="after")
    def _one_memory(self) -> Self:
        # Whether both may be missing depends on the whole spec: a load determines the memory.
        if self.memory is not None and self.heap is not None:
            exactly_one(memory=self.memory, heap=self.heap)
        return self


class Driver(Part):
    """Resources of the driver: CPU request in millicores, memory (of the pod) or heap in MiB, and ephemeral storage in MiB."""

    cores: Millicores = 1000
    memory: MemoryMib | None = None
    heap: MemoryMib | None = None
    ephemeral_storage: EphemeralStorageMib | None = None

    @model_validator(mode="after")
    def _one_memory(self) -> Self:
        if self.memory is not None or self.heap is not None:
            exactly_one(memory=self.memory, heap=self.heap)
        return self


class State(Part):
    """State backend of joins and windows.

    Args:
        backend: ``memory`` (on the heap) or ``rocksdb`` (in native memory and on disk).
        incremental: upload the changes of each batch instead of whole snapshots (RocksDB's changelog).
        ttl: how long the keyed state of `process` blocks and regular joins is kept after its last write, in ms; None for no expiry.
    """

    backend: Literal["memory", "rocksdb"] = "rocksdb"
    incremental: bool = True
    ttl: DurationMs | None = None


class Restart(Part):
    """When a driver that fails is not started again. Failures of the infrastructure do not count.

    Args:
        failures: that are allowed within the time; one more stops the job.
        within: the time, in ms.
    """

    failures: Annotated[int, Field(ge=0, le=50)] = 10
    within: DurationMs = 3_600_000


class Checkpointing(Part):
    """The checkpoint of a job.

    Args:
        retention: how far back the job can go with its state, in ms; None: 100 micro-batches.
        state_schema: ``same``: a changed app only goes on with state of the schema that its operators have; ``any``: Spark alone decides.
    """

    retention: DurationMs | None = None
    state_schema: Literal["same", "any"] = "same"


class LoadedState(Part):
    """Size of the state of joins and aggregations.

    Args:
        keys: number of keys at a time, over all operators.
        bytes_per_key: bytes of state per key, the key included; None: those of the load's profile.
        operators: ``join`` for a stream-stream join, ``other`` for the rest; by default the joins that the app calls.
    """

    keys: Annotated[int, Field(ge=1, le=10**13)]
    bytes_per_key: Annotated[int, Field(ge=1, le=10**9)] | None = None
    operators: list[Literal["join", "other"]] | None = None


class Load(Part):
    """Load of the job, summed over its sources; parallelism, partitions and memory are derived from it.

    Args:
        events_per_second: average rate over a day.
        event_bytes: size of an event as stored by Kafka.
        events_per_slot: events per second that a slot processes in a steady state; this or `profile`.
        profile: a JSON or YAML file beside the spec, of `penstock profile` or with points; this or `events_per_slot`.
        peak_factor: ratio of the peak rate to the average.
        utilisation: share of the throughput that the peak may use.
        restart: downtime of a restart, in ms.
        catch_up: time within which the backlog of a restart must be processed, in ms.
        backlog: number of events already waiting.
        retention: how long Kafka keeps the events, in ms; by default the environment's.
        fan_out: number of consumer groups that read each event, including this job's.
        replication: replicas that Kafka keeps; by default the environment's.
        state: state of joins and aggregations.
        batch_overhead: duration of a micro-batch without rows, in ms.
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
        exactly_one(eventsPerSlot=self.events_per_slot, profile=self.profile)
        return self
