"""Explanations of the numbers of a plan, for ``--explain``: the rule and the inputs."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sizing.executors import REPARTITIONED
from penstock.sizing.explained import Explanation
from penstock.sizing.file_splits import least_partitions
from penstock.sizing.plan.job_load import JobLoad
from penstock.sizing.plan.needs_explanation import explain_needs
from penstock.sizing.plan.node_explanation import explain_nodes
from penstock.sizing.plan.read_limit import RECORD_BYTES, RECORDS_PER_SLOT_PER_S
from penstock.sizing.plan.storage_explanation import explain_storage, explain_throughput
from penstock.sizing.planned import Plan, PlannedPod
from penstock.sizing.spark_pods import DRIVER_OVERHEAD_MIB, SAFE_HEAP_MIB, has_own_overhead, planned_factor, spark_factor
from penstock.sizing.spark_settings import MIN_BATCHES_TO_RETAIN, MIN_BATCHES_TO_RETAIN_KEY, PodSettings, SparkSettings
from penstock.sizing.targets import DriverTarget, ExecutorTarget, Targets

Inputs = dict[str, int | float | str]


def explain(targets: Targets, settings: SparkSettings, draft: Plan, load: JobLoad | None = None) -> tuple[Explanation, ...]:
    """One explanation per number of the plan, in the order of its JSON; those of the load, the nodes and the cost come last.

    Args:
        targets: targets of the job.
        settings: settings of the job.
        draft: the plan.
        load: the planned load, whose own explanation of a number takes precedence.
    """
    own = load.explanations if load else ()
    explained_numbers = {explanation.number for explanation in own}
    rest = (explanation for explanation in _explained(targets, settings, draft) if explanation.number not in explained_numbers)
    return (*rest, *own, *explain_nodes(draft))


def _explained(targets: Targets, settings: SparkSettings, draft: Plan) -> Iterator[Explanation]:
    yield from (
        *_totals(targets, draft),
        *_pod("driver", targets.driver, settings.driver, settings, draft.pods.driver),
        *_pod("executor", targets.executor, settings.executor, settings, draft.pods.executor),
        *_slots(settings, draft),
        *explain_needs(targets, draft),
        *explain_storage(targets, draft),
        *explain_throughput(draft),
        *_stages(settings, draft),
        *_files(settings, draft),
        *_topics(targets, draft),
        *_checkpoint(targets, draft),
        *_read_limit(targets, draft),
    )


def _totals(targets: Targets, draft: Plan) -> Iterator[Explanation]:
    totals, executor, parallelism = draft.totals, draft.pods.executor, draft.parallelism.value
    rule = "PARALLELISM of the app, otherwise of the environment's job, otherwise of the spec"
    yield _of("parallelism.value", parallelism, rule, source=draft.parallelism.source)
    rule = "max(1, ceil(parallelism / slots))"
    yield _of("totals.executors", totals.executors, rule, parallelism=parallelism, slots=executor.slots or 1)
    yield _of("totals.pods", totals.pods, "executors + 1 driver", executors=totals.executors)
    rule = "executors * memory of one pod"
    yield _of("totals.executorMemoryMib", totals.executor_memory_mib, rule, executors=totals.executors, memoryMib=executor.memory_mib)
    rule = "executors * CPU request of one pod"
    inputs: Inputs = {"executors": totals.executors, "requestCpuMillicores": executor.request_cpu_millicores}
    yield _of("totals.executorCpuMillicores", totals.executor_cpu_millicores, rule, **inputs)
    operators = targets.operators
    counted: Inputs = {"operators": operators.count, "parallelism": parallelism, "operatorsFrom": operators.counted_from}
    if operators.names:
        counted["names"] = ", ".join(operators.names)
    yield _of("totals.subtasks", totals.subtasks, "operators * parallelism, as Flink counts subtasks", **counted)


def _pod(
    kind: str, asked: ExecutorTarget | DriverTarget, own: PodSettings, settings: SparkSettings, pod: PlannedPod
) -> Iterator[Explanation]:
    heap_given = asked.memory_mib is None and (asked.heap_mib is not None or own.heap_mib is not None)
    at = f"pods.{kind}"
    yield from _memory(at, kind, heap_given, own, settings, pod)
    key = f"spark.kubernetes.{kind}.request.cores"
    if asked.cpu_millicores is not None:
        yield _of(f"{at}.requestCpuMillicores", pod.request_cpu_millicores, f"the {kind}'s cores, as specified")
    elif own.request_cpu_millicores is not None:
        yield _of(f"{at}.requestCpuMillicores", pod.request_cpu_millicores, f"{key}, as specified")
    else:
        rule = "equal to the executor's cores" if kind == "executor" else "spark.driver.cores, 1 unless given"
        yield _of(f"{at}.requestCpuMillicores", pod.request_cpu_millicores, rule)
    yield _of(f"{at}.limitCpuMillicores", pod.limit_cpu_millicores, f"spark.kubernetes.{kind}.limit.cores; none if not set")


def _memory(at: str, kind: str, heap_given: bool, own: PodSettings, settings: SparkSettings, pod: PlannedPod) -> Iterator[Explanation]:
    beside: Inputs = {"offHeapMib": pod.off_heap_mib, "pysparkMib": pod.pyspark_mib}
    beside = {key: value for key, value in beside.items() if value}
    parts: Inputs = {"heapMib": pod.heap_mib, "overheadMib": pod.overhead_mib, **beside}
    if heap_given:
        yield _of(f"{at}.memoryMib", pod.memory_mib, "heap + overhead + off-heap + Python's memory, as computed by Spark", **parts)
        yield _of(f"{at}.heapMib", pod.heap_mib, f"the {kind}'s heap, as specified")
        factor = spark_factor(own, settings)
    else:
        yield _of(f"{at}.memoryMib", pod.memory_mib, f"the {kind}'s memory, as specified or by default; the sum of its parts", **parts)
        rule = "the largest heap for which the pod, including overhead and other parts, does not exceed the memory"
        yield _of(f"{at}.heapMib", pod.heap_mib, rule, memoryMib=pod.memory_mib, **beside)
        factor = planned_factor(own, settings)
    yield _overhead(at, kind, heap_given, factor, own, settings, pod)
    if kind == "executor":
        yield _of(f"{at}.offHeapMib", pod.off_heap_mib, "spark.memory.offHeap.size if enabled, otherwise 0")
        rule = "spark.executor.pyspark.memory in cluster mode, otherwise 0"
        yield _of(f"{at}.pysparkMib", pod.pyspark_mib, rule, deployMode=settings.deploy_mode)


def _overhead(
    at: str, kind: str, heap_given: bool, factor: float, own: PodSettings, settings: SparkSettings, pod: PlannedPod
) -> Explanation:
    if own.overhead_mib is not None:
        return _of(f"{at}.overheadMib", pod.overhead_mib, f"spark.{kind}.memoryOverhead, as specified")
    inputs: Inputs = {"factor": factor, "heapMib": pod.heap_mib, "leastMib": own.min_overhead_mib}
    rule = "max(int(factor * heap), minimum overhead)"
    if heap_given or has_own_overhead(own, settings):
        return _of(f"{at}.overheadMib", pod.overhead_mib, rule, **inputs)
    if kind == "driver" and pod.heap_mib > SAFE_HEAP_MIB:
        inputs["leastMib"] = max(own.min_overhead_mib, DRIVER_OVERHEAD_MIB)
    if kind == "executor" and settings.pyspark_mib and settings.deploy_mode == "client":
        inputs["pysparkMemoryMib"] = settings.pyspark_mib
        rule = "max(int(factor * heap), minimum overhead, Python's memory)"
    return _of(f"{at}.overheadMib", pod.overhead_mib, f"{rule}, plus the MiB left by rounding", **inputs)


def _slots(settings: SparkSettings, draft: Plan) -> Iterator[Explanation]:
    executor = draft.pods.executor
    slots = executor.slots or 1
    cores, task_cpus = draft.spark_conf["spark.executor.cores"], str(settings.task_cpus)
    rule = "spark.executor.cores // spark.task.cpus"
    yield _of("pods.executor.slots", executor.slots, rule, executorCores=int(cores), taskCpus=task_cpus)
    rule = "memory of one executor // slots"
    yield _of("perSlot.memoryMib", draft.per_slot.memory_mib, rule, memoryMib=executor.memory_mib, slots=slots)
    rule = "CPU request of one executor // slots"
    request = executor.request_cpu_millicores
    yield _of("perSlot.cpuMillicores", draft.per_slot.cpu_millicores, rule, requestCpuMillicores=request, slots=slots)


def _stages(settings: SparkSettings, draft: Plan) -> Iterator[Explanation]:
    shuffle = (
        "spark.sql.shuffle.partitions, as specified" if settings.shuffle_partitions else "spark.sql.shuffle.partitions: the parallelism"
    )
    # A read stage has as many tasks as the topic's partitions, or as spec.stages.source requires if that is more.
    partitions = {f"read {topic}": count for topic, count in draft.kafka.topics.items()}
    for index, stage in enumerate(draft.stages):
        rule = "one task per partition of the topic" if stage.kind == "read" else shuffle
        if stage.kind == "read" and stage.tasks > partitions.get(stage.name, stage.tasks):
            rule = "stages.source, as specified: Spark splits the topic's partitions"
        elif stage.name == REPARTITIONED:
            rule = "stages.stateless, as specified"
        elif stage.kind == "files":
            rule = "one task per partition of files, see files"
        yield _of(f"stages[{index}].tasks", stage.tasks, rule, stage=stage.name)
    reads = sum(stage.tasks for stage in draft.stages if stage.kind != "shuffle")
    after = max(stage.tasks for stage in draft.stages if stage.kind == "shuffle")
    slots = draft.totals.executors * (draft.pods.executor.slots or 1)
    rule = "min(executors * slots, max(all reads, one stage after a shuffle)), stage after stage"
    yield _of("tasksAtATime", draft.tasks_at_a_time, rule, slots=slots, reads=reads, afterShuffle=after)


def _files(settings: SparkSettings, draft: Plan) -> Iterator[Explanation]:
    slots, cores = draft.totals.executors * (draft.pods.executor.slots or 1), int(draft.spark_conf["spark.executor.cores"])
    for name, read in draft.files.items():
        at, open_bytes = f"files.{name}", settings.files_open_cost_bytes
        yield _of(f"{at}.files", read.files, "the source's input, or --files")
        yield _of(f"{at}.sizeBytes", read.size_bytes, "the source's input, or --files")
        rule = "ceil(files / maxFilesPerTrigger), 1 without it"
        yield _of(f"{at}.microBatches", read.micro_batches, rule, files=read.files)
        yield _of(f"{at}.filesPerBatch", read.files_per_batch, "maxFilesPerTrigger, at most all files")
        rule = "min(maxPartitionBytes, max(openCostInBytes, bytes and opening costs of a micro-batch / least partitions))"
        given: Inputs = {"maxPartitionBytes": settings.files_partition_bytes, "openCostInBytes": open_bytes}
        least = least_partitions(settings, draft.totals.executors * cores)
        yield Explanation(
            number=f"{at}.splitBytes", value=read.split_bytes, rule=rule, inputs={**given, "leastPartitions": least}, binding=read.binding
        )
        rule = "each file is cut every splitBytes; one that is not splittable is one split"
        yield _of(f"{at}.splits", read.splits, rule, files=read.files_per_batch)
        rule = "splits, the longest first, put into a partition until the next would exceed splitBytes; each adds openCostInBytes"
        yield _of(f"{at}.tasks", read.tasks, rule, splits=read.splits, files=read.files_per_batch)
        yield _of(f"{at}.waves", read.waves, "ceil(tasks / slots)", tasks=read.tasks, slots=slots)


def _topics(targets: Targets, draft: Plan) -> Iterator[Explanation]:
    for topic, partitions in draft.kafka.topics.items():
        if topic in targets.sink_topics:
            yield _of(f"kafka.topics.{topic}", partitions, "the sink's partitions, as specified or 1")
        elif targets.source_topics.get(topic) is not None:
            yield _of(f"kafka.topics.{topic}", partitions, "the source's partitions, as specified")
        elif topic in targets.stages.source:
            yield _of(f"kafka.topics.{topic}", partitions, "stages.source: one task reads one partition")
        else:
            rule = "the parallelism: one task reads one partition"
            yield _of(f"kafka.topics.{topic}", partitions, rule, parallelism=draft.parallelism.value)


def _checkpoint(targets: Targets, draft: Plan) -> Iterator[Explanation]:
    state, written = draft.state, draft.state.checkpoint
    rule = "shuffle partitions * the operators' stores: 1, a join on the heap 4"
    shuffle = int(draft.spark_conf["spark.sql.shuffle.partitions"])
    yield _of("state.stores", state.stores, rule, shufflePartitions=shuffle, backend=state.backend)
    at = "state.checkpoint"
    several: Inputs = {"queries": targets.queries} if targets.queries > 1 else {}
    rule = f"2 logs{' of each query' if several else ''} + stores * 2: a file and its checksum"
    yield _of(f"{at}.objectsPerBatch", written.objects_per_batch, rule, stores=state.stores, **several)
    yield _of(f"{at}.objectsPerDay", written.objects_per_day, "objects of a batch * batches of a day")
    rule = "stores * batches of a day / 10 * files of a snapshot"
    yield _of(f"{at}.snapshotObjectsPerDay", written.snapshot_objects_per_day, rule, stores=state.stores)
    rule = "PUT-class requests: 1 per object, as the checkpoint manager does not rename"
    yield _of(f"{at}.requestsPerBatch", written.requests_per_batch, rule, objectsPerBatch=written.objects_per_batch)
    rule = "requests of a batch * batches of a day, plus those of the snapshots"
    yield _of(f"{at}.requestsPerDay", written.requests_per_day, rule, snapshotObjectsPerDay=written.snapshot_objects_per_day)
    yield _of(f"{at}.requestsPerMonth", written.requests_per_month, "30 days", requestsPerDay=written.requests_per_day)
    rule = "an estimate of the state and the changelogs of the retained batches; 0 if no load specifies the state"
    retained = int(draft.spark_conf.get(MIN_BATCHES_TO_RETAIN_KEY, MIN_BATCHES_TO_RETAIN))
    yield _of(f"{at}.storageBytes", written.storage_bytes, rule, retainedBatches=retained)


def _read_limit(targets: Targets, draft: Plan) -> Iterator[Explanation]:
    limit, executor = draft.read_limit, draft.pods.executor
    if limit is None:
        return
    number, slots = "readLimit.records", executor.count * (executor.slots or 1)
    if limit.binding == "load":
        yield _of(number, limit.records, "maxOffsetsPerTrigger of the load, for sources without a limit of their own")
    elif limit.binding == "time":
        rule = "slots * records that a slot reads at best in a second * trigger, at least 10 s"
        yield _of(number, limit.records, rule, slots=slots, recordsPerS=RECORDS_PER_SLOT_PER_S, triggerS=targets.trigger_s or 0)
    else:
        rule = "executors * (heap - 300 MiB) * 0.6 * 0.5, where Spark caches rows, / (bytes of a record * queries)"
        memory: Inputs = {"executors": executor.count, "heapMib": executor.heap_mib, "recordBytes": RECORD_BYTES}
        yield _of(number, limit.records, rule, **memory, queries=targets.queries)


def _of(number: str, value: int | float | None, rule: str, **inputs: int | float | str) -> Explanation:
    return Explanation(number=number, value=value, rule=rule, inputs=inputs)
