"""The fixed properties of a job and its environment when a load is planned."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from penstock.sizing.kafka.demand import BROKER_QUOTA
from penstock.sizing.python_workers import PythonUse
from penstock.sizing.spark_settings import MIN_BATCHES_TO_RETAIN
from penstock.sizing.state.stores import OperatorKind

_Count = Annotated[int, Field(ge=1)]
_Mib = Annotated[int, Field(ge=0)]


class KafkaChoice(BaseModel):
    """The environment's Kafka.

    Args:
        kind: with ``none`` no brokers are planned.
        broker_type: fixed broker type; None: the cheapest that carries the load.
        brokers: fixed number of brokers; None: as many as the load requires.
        zones: zones of the brokers.
        broker_quota: maximum number of brokers of one cluster.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    kind: Literal["standard", "express", "serverless", "none"] = "standard"
    broker_type: str | None = None
    brokers: _Count | None = None
    zones: Literal[2, 3] = 3
    broker_quota: Annotated[int, Field(ge=3)] = BROKER_QUOTA


class JobShape(BaseModel):
    """The fields of the spec besides the load.

    Args:
        slots_per_executor: task slots of one executor.
        topics: topics that the job reads, with their partitions; None: as many as the load requires.
        written_partitions: partitions of the topics that the job writes.
        parallelism: fixed parallelism, for example the app's PARALLELISM; None: as the load requires.
        shuffle_partitions: fixed value in sparkConf; None: the parallelism.
        trigger_s: trigger interval; None: one bounded run with an unbounded batch.
        heap_mib: executor heap, if fixed.
        overhead_mib: executor memory overhead, if fixed.
        backend: state backend, if fixed.
        queries: queries of the app, each of which may read all topics.
        app_operators: stateful operators found in the app, regardless of the load's own count.
        python_uses: operators that run in Python workers.
        incremental: RocksDB's changelog checkpointing.
        rocksdb_bounded: whether RocksDB's memory is bounded.
        batches_retained: micro-batches that the checkpoint keeps.
        kafka: the environment's Kafka.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    slots_per_executor: _Count = 1
    topics: dict[str, _Count | None] = Field(default_factory=dict)
    written_partitions: Annotated[int, Field(ge=0)] = 0
    parallelism: _Count | None = None
    shuffle_partitions: _Count | None = None
    trigger_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = 10.0
    heap_mib: _Mib | None = None
    overhead_mib: _Mib | None = None
    backend: Literal["memory", "rocksdb"] | None = None
    queries: _Count = 1
    app_operators: tuple[OperatorKind, ...] = ()
    python_uses: tuple[PythonUse, ...] = ("keyed",)
    incremental: bool = True
    rocksdb_bounded: bool = True
    batches_retained: _Count = MIN_BATCHES_TO_RETAIN
    kafka: KafkaChoice = KafkaChoice()
