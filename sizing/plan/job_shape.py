"""The fixed properties of a job when its load is planned."""

from __future__ import annotations

from penstock.sizing.load.job_shape import JobShape, KafkaChoice
from penstock.sizing.spark_settings import MIN_BATCHES_TO_RETAIN
from penstock.sizing.targets import DecidedTargets


def shape_of(
    targets: DecidedTargets,
    *,
    slots_per_executor: int,
    shuffle_partitions: int | None = None,
    heap_mib: int | None = None,
    overhead_mib: int | None = None,
    rocksdb_bounded: bool = True,
    batches_retained: int = MIN_BATCHES_TO_RETAIN,
    kafka: KafkaChoice | None = None,
) -> JobShape:
    """The fixed properties of a job when its load is planned.

    Args:
        targets: targets of the job; a parallelism set in its code is fixed, one derived from the load is not.
        slots_per_executor: task slots of one executor.
        shuffle_partitions: value in sparkConf; None: the parallelism.
        heap_mib: heap of the planned executor; None if the load determines it.
        overhead_mib: likewise.
        rocksdb_bounded: value in sparkConf.
        batches_retained: micro-batches that the checkpoint keeps.
        kafka: Kafka of the environment; None: no brokers are planned.
    """
    return JobShape(
        slots_per_executor=slots_per_executor,
        topics=targets.source_topics,
        written_partitions=sum(targets.sink_topics.values()),
        parallelism=None if targets.parallelism.source == "load" else targets.parallelism.value,
        shuffle_partitions=shuffle_partitions,
        trigger_s=targets.trigger_s,
        heap_mib=heap_mib,
        overhead_mib=overhead_mib,
        backend=targets.state_backend,
        rocksdb_bounded=rocksdb_bounded,
        batches_retained=batches_retained,
        queries=targets.queries,
        app_operators=targets.stateful_operators,
        python_uses=targets.python.uses,
        incremental=targets.state_incremental,
        kafka=kafka or KafkaChoice(kind="none"),
    )
