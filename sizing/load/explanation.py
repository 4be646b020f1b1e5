"""Explanations of the numbers of a load's plan, for ``--explain``: the rule, the inputs and the binding constraint."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sizing.explained import Explanation
from penstock.sizing.load.job_shape import JobShape
from penstock.sizing.load.load import Load
from penstock.sizing.load.load_plan import LoadPlan
from penstock.sizing.load.memory import heap_for_rows_mib
from penstock.sizing.load.parallelism import needed_partitions, needed_slots

Inputs = dict[str, int | float | str]


def explain_load(load: Load, job: JobShape, draft: LoadPlan) -> tuple[Explanation, ...]:
    """One explanation per number of the plan, in the order of its JSON."""
    return (
        *_rates(load, job, draft),
        *_topics(load, job, draft),
        *_batches(load, draft),
        *_memory(load, job, draft),
        *_state(load, draft),
        *_checkpoint(job, draft),
        *_kafka(load, job, draft),
    )


def _rates(load: Load, job: JobShape, draft: LoadPlan) -> Iterator[Explanation]:
    yield _of("peakEventsPerS", draft.peak_events_per_s, "average * peak factor", eventsPerS=load.events_per_s, peakFactor=load.peak_factor)
    rule = "round(backlog / catch-up + peak * restart / catch-up + peak / utilisation), as Flink's autoscaler"
    inputs: Inputs = {"peakEventsPerS": draft.peak_events_per_s, "utilisation": load.utilisation, "restartS": load.restart_s}
    inputs |= {"catchUpS": load.catch_up_s, "backlogEvents": load.backlog_events}
    yield _of("targetEventsPerS", draft.target_events_per_s, rule, **inputs)
    yield _parallelism(load, job, draft)
    inputs = {"parallelism": draft.parallelism, "slots": job.slots_per_executor}
    yield _of("executors", draft.executors, "max(1, ceil(parallelism / slots of one))", **inputs)
    yield _of("slots", draft.slots, "executors * slots of one", executors=draft.executors, slots=job.slots_per_executor)
    read = sum(draft.topic_partitions.values())
    inputs = {"parallelism": draft.parallelism, "partitions": read}
    binding = "partitions" if job.topics and read < draft.parallelism else "parallelism"
    rule = f"throughput of the tasks that read: {_throughput(load)}"
    yield _of("capacityEventsPerS", draft.capacity_events_per_s, rule, binding, **inputs)


def _parallelism(load: Load, job: JobShape, draft: LoadPlan) -> Explanation:
    needed = needed_slots(load, job.trigger_s)
    inputs: Inputs = {"targetEventsPerS": draft.target_events_per_s, "throughput": _throughput(load)}
    if job.parallelism is not None:
        return _of(
            "parallelism", draft.parallelism, "fixed; the load alone would require the value of needed", "fixed", needed=needed.slots
        )
    rule = "the smallest number of slots with the target throughput whose bounded micro-batches clear a backlog in time"
    return _of("parallelism", draft.parallelism, rule, needed.binding, **inputs)


def _throughput(load: Load) -> str:
    if load.measured is not None and load.slot_rate is not None:
        rule = "slots * speed of the machines * min(a slot's rate, cores of a slot * events per CPU second)"
        return f"{rule}, {load.slot_rate.typical:g} events/s a slot"
    if load.profile is None:
        return f"slots * {load.events_per_slot_per_s:g} events/s"
    origin = ", ".join(part for part in (load.profile.source, load.profile.date) if part)
    return f"measured at {len(load.profile.points)} points{f' ({origin})' if origin else ''}, linearly interpolated"


def _topics(load: Load, job: JobShape, draft: LoadPlan) -> Iterator[Explanation]:
    fewest = needed_partitions(load, draft.parallelism)
    inputs: Inputs = {"parallelism": draft.parallelism, "peakMibps": draft.kafka.peak_in_mibps}
    inputs |= {"partitionInMibps": load.partition_in_mibps, "partitionOutMibps": load.partition_out_mibps}
    for topic, partitions in draft.topic_partitions.items():
        if job.topics.get(topic) is not None:
            yield _of(f"topicPartitions.{topic}", partitions, "the source's partitions, as specified", "fixed")
        else:
            rule = "max(parallelism, ceil(peak / one partition's producers), ceil(peak / one partition's consumer))"
            yield _of(f"topicPartitions.{topic}", partitions, rule, fewest.binding, **inputs)
    rule = (
        "spark.sql.shuffle.partitions, as specified"
        if job.shuffle_partitions
        else "the parallelism; fixed by the first run of a checkpoint"
    )
    yield _of("shufflePartitions", draft.shuffle_partitions, rule)


def _batches(load: Load, draft: LoadPlan) -> Iterator[Explanation]:
    if draft.trigger_s is None or draft.max_offsets_per_trigger is None:
        return
    yield _of("triggerS", draft.trigger_s, "the trigger, as specified or 10 s")
    rule = "capacity * (trigger - fixed cost of a batch): the largest batch that ends before the next one"
    inputs: Inputs = {"capacityEventsPerS": draft.capacity_events_per_s, "triggerS": draft.trigger_s}
    inputs["batchOverheadS"] = load.batch_overhead_s
    yield _of("maxOffsetsPerTrigger", draft.max_offsets_per_trigger, rule, **inputs)
    rule = "(backlog + peak * restart) / (min(capacity, maxOffsetsPerTrigger / trigger) - peak)"
    inputs = {"peakEventsPerS": draft.peak_events_per_s, "restartS": load.restart_s, "backlogEvents": load.backlog_events}
    yield _of("catchUpS", draft.catch_up_s, rule, **inputs, atMostS=load.catch_up_s)


def _memory(load: Load, job: JobShape, draft: LoadPlan) -> Iterator[Explanation]:
    events = job.queries * (draft.max_offsets_per_trigger or draft.peak_events_per_s * 10)
    share = int(-(-events * load.event_bytes // draft.executors))
    rows_mib = heap_for_rows_mib(share)
    rule = "max(300 MiB + twice an executor's share of a batch / 0.6, 300 MiB + its state on the heap / 0.4, 1024 MiB)"
    inputs: Inputs = {"batchBytes": share, "stateHeapMib": draft.state.executor_heap_mib, **_several(job)}
    binding = "state" if draft.memory.heap_mib > rows_mib else "rows" if rows_mib > 1024 else "Spark's default"
    yield _of("memory.heapMib", draft.memory.heap_mib, rule, binding, **inputs)
    yield _overhead(draft)
    inputs = {"heapMib": draft.memory.heap_mib, "overheadMib": draft.memory.overhead_mib}
    yield _of("memory.memoryMib", draft.memory.memory_mib, "heap + overhead", **inputs)


def _overhead(draft: LoadPlan) -> Explanation:
    memory, parts, python = draft.memory, draft.memory.overhead, draft.memory.python
    rule = "max(0.4 * heap, the JVM besides its heap + RocksDB + Python's workers and daemon + Arrow's batches)"
    inputs: Inputs = {"heapMib": memory.heap_mib, "jvmMib": parts.jvm_mib, "rocksdbMib": parts.rocksdb_mib}
    inputs |= {"pythonMib": parts.python_mib, "arrowMib": parts.arrow_mib}
    by: dict[str, int] = {"state": parts.rocksdb_mib, "Python": python.total_mib, "the JVM": parts.jvm_mib}
    binding = "heap" if memory.overhead_mib > parts.needed_mib else max(by, key=lambda part: by[part])
    return _of("memory.overheadMib", memory.overhead_mib, rule, binding, **inputs)


def _state(load: Load, draft: LoadPlan) -> Iterator[Explanation]:
    state = draft.state
    small = "two versions of an executor's state use at most half of the heap that Spark leaves free"
    rule = f"memory if only stream-stream joins have state and {small}, else rocksdb"
    yield _of(
        "state.backend", state.backend, rule if state.chosen else "as specified", stateBytes=state.state_bytes, executors=draft.executors
    )
    inputs: Inputs = {"shufflePartitions": draft.shuffle_partitions, "operators": ", ".join(load.operators) or "none"}
    yield _of("state.stores", state.stores, "shuffle partitions * the operators' stores: 1, a join on the heap 4", **inputs)
    yield _of("state.stateBytes", state.state_bytes, "keys * bytes of a key", keys=load.state_keys, bytesPerKey=load.bytes_per_key)
    rule = "two versions of the state / executors, with the memory backend"
    yield _of("state.executorHeapMib", state.executor_heap_mib, rule, executors=draft.executors)
    rule = (
        "write buffers of 128 MiB per store of an executor, at most 250 MiB together, and its share of the state, at least 8 MiB per "
        "store; at most 500 MiB together; 136 MiB per store if RocksDB's memory is unbounded"
    )
    yield _of("state.executorNativeMib", state.executor_native_mib, rule, stores=state.stores, executors=draft.executors)


def _checkpoint(job: JobShape, draft: LoadPlan) -> Iterator[Explanation]:
    traffic, stores = draft.checkpoint, draft.state.stores
    logs = "2 logs of each query" if job.queries > 1 else "2 logs"
    rule = f"{logs} + stores * 2: a file and its checksum"
    yield _of("checkpoint.objectsPerBatch", traffic.objects_per_batch, rule, stores=stores, **_several(job))
    trigger = draft.trigger_s or 86_400.0
    yield _of("checkpoint.objectsPerDay", traffic.objects_per_day, "objects of a batch * 86400 / trigger", triggerS=trigger)
    rule = "stores * batches of a day / 10 * files of a snapshot"
    yield _of("checkpoint.snapshotObjectsPerDay", traffic.snapshot_objects_per_day, rule, stores=stores)
    rule = "PUT-class requests: 1 per object, as the checkpoint manager does not rename"
    yield _of("checkpoint.requestsPerDay", traffic.requests_per_day, rule, objectsPerDay=traffic.objects_per_day)


def _kafka(load: Load, job: JobShape, draft: LoadPlan) -> Iterator[Explanation]:
    kafka = draft.kafka
    inputs: Inputs = {"peakEventsPerS": draft.peak_events_per_s, "eventBytes": load.event_bytes}
    yield _of("kafka.peakInMibps", kafka.peak_in_mibps, "peak * bytes of an event", **inputs)
    rule = (
        "peak in * (consumer groups + further queries, each of which may read all topics)"
        if job.queries > 1
        else "peak in * consumer groups"
    )
    yield _of("kafka.peakOutMibps", kafka.peak_out_mibps, rule, fanOut=load.fan_out, **_several(job))
    if kafka.serverless is not None:
        used = kafka.serverless
        yield _of("kafka.serverless.partitions", used.partitions, "max(specified, rates / limits of a partition)", used.binding)
    if kafka.cluster is None:
        return
    cluster = kafka.cluster
    inputs = {"peakInMibps": kafka.peak_in_mibps, "peakOutMibps": kafka.peak_out_mibps, "partitions": kafka.partitions}
    inputs |= {"brokerType": cluster.broker_type, "ingressMibpsPerBroker": cluster.ingress_mibps_per_broker}
    rule = "the maximum over ingress, egress, partitions and storage, each rounded up to the zones; the cheapest of all types"
    yield _of("kafka.cluster.brokers", cluster.brokers, rule, cluster.binding, **inputs)
    rule = "average rate * retention * replication * 2; Express: one copy"
    inputs = {"averageInMibps": kafka.average_in_mibps, "retentionH": load.retention_h, "replication": load.replication}
    yield _of("kafka.cluster.storageGib", cluster.storage.ebs_gib or cluster.storage.express_gib, rule, **inputs)


def _several(job: JobShape) -> Inputs:
    """The number of queries, where a job has several."""
    return {"queries": job.queries} if job.queries > 1 else {}


def _of(number: str, value: int | float | str | None, rule: str, binding: str = "", /, **inputs: int | float | str) -> Explanation:
    return Explanation(number=number, value=value, rule=rule, inputs=inputs, binding=binding)
