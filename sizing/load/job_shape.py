"""What of a job and its environment is fixed before a load is planned for."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from penstock.sizing.kafka.demand import BROKER_QUOTA
from penstock.sizing.state.stores import OperatorKind

_Count = Annotated[int, Field(ge=1)]
_Mib = Annotated[int, Field(ge=0)]


class KafkaChoice(BaseModel):
    """The Kafka that the environment has.

    Args:
        kind: ``none`` plans no brokers.
        broker_type: fixed; None: the cheapest that carries the load.
        brokers: fixed; None: as many as the load takes.
        zones: of the brokers.
        broker_quota: brokers of one cluster at most.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    kind: Literal["standard", "express", "serverless", "none"] = "standard"
    broker_type: str | None = None
    brokers: _Count | None = None
    zones: Literal[2, 3] = 3
    broker_quota: Annotated[int, Field(ge=3)] = BROKER_QUOTA


class JobShape(BaseModel):
    """What the spec says beside the load.

    Args:
        slots_per_executor: task slots of one executor.
        topics: that the job reads, with their partitions; None: as many as the load takes.
        written_partitions: of the topics that the job writes.
        parallelism: fixed, by the app's PARALLELISM for example; None: what the load takes.
        shuffle_partitions: fixed in sparkConf; None: the parallelism.
        trigger_s: from one micro-batch to the next; None: one bounded run, without a limit of its batch.
        heap_mib: of the executor, where it is fixed.
        overhead_mib: of the executor, where it is fixed.
        backend: of the state, where it is fixed.
        app_operators: the stateful operators that are seen in the app, whatever the load counts.
        incremental: RocksDB's changelog.
        rocksdb_bounded: whether RocksDB's memory is bounded.
        kafka: of the environment.
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
    app_operators: tuple[OperatorKind, ...] = ()
    incremental: bool = True
    rocksdb_bounded: bool = False
    kafka: KafkaChoice = KafkaChoice()
