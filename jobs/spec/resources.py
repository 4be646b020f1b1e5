"""What a job gets to run with: executors, driver, state and the load that they follow from."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from penstock.jobs.spec.part import DurationMs, MemoryMib, Millicores, Part, exactly_one

# Beside the spec or below its folder.
PROFILE_PATTERN = r"^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*\.(json|yaml|yml)$"


class Executor(Part):
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
            exactly_one(memory=self.memory, heap=self.heap)
        return self


class Driver(Part):
    """What the driver has: CPU request in millicores, and memory (the pod's) or heap in MiB."""

    cores: Millicores = 1000
    memory: MemoryMib | None = None
    heap: MemoryMib | None = None

    @model_validator(mode="after")
    def _one_memory(self) -> Self:
        if self.memory is not None or self.heap is not None:
            exactly_one(memory=self.memory, heap=self.heap)
        return self


class State(Part):
    """Where the state of joins and windows is kept.

    Args:
        backend: ``memory`` (on the heap) or ``rocksdb`` (in native memory and on disk).
        incremental: upload each batch's changes instead of whole snapshots (RocksDB's changelog).
        ttl: for how long the keyed state of `process` blocks and regular joins is kept after it was last written, in ms; None: for ever.
    """

    backend: Literal["memory", "rocksdb"] = "rocksdb"
    incremental: bool = True
    ttl: DurationMs | None = None


class LoadedState(Part):
    """What joins and aggregations keep at a time.

    Args:
        keys: at a time, of all of them together.
        bytes_per_key: of state for one key, the key included.
        operators: ``join`` for a stream-stream join, ``other`` for the rest; by default the joins that the app's code calls.
    """

    keys: Annotated[int, Field(ge=1, le=10**13)]
    bytes_per_key: Annotated[int, Field(ge=1, le=10**9)]
    operators: list[Literal["join", "other"]] | None = None


class Load(Part):
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
        exactly_one(eventsPerSlot=self.events_per_slot, profile=self.profile)
        return self
