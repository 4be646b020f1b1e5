"""Rules on job specs and their plans."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sizing.lint.finding import Severity
from penstock.sizing.lint.rule import Fault, rule
from penstock.sizing.lint.subject import LintedJob, LintedSource, Subject, Where
from penstock.sizing.plan.notes import driver_text, overhead_text, storage_text
from penstock.sizing.state.memory import state_memory

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
BOUNDED_ROCKSDB = "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage"
# More partitions per slot than this only add state stores: each writes its own files in every batch.
PARTITIONS_A_SLOT = 4
# Also detected by the plan: no NodePool accepts a pod, driver on spot, partitions below parallelism, idle executors.
_RULES_OF_THEIR_OWN = {"SIZ-013", "SIZ-014", "SIZ-015", "SIZ-016"}


@rule(
    "LINT-050",
    "error",
    "parallelism exceeds a topic's partitions",
    why="each partition is read by one task: surplus slots are idle while the topic is read",
    fix="increase the topic's partitions, or reduce the parallelism",
)
def few_partitions(subject: Subject) -> Iterator[Fault]:
    """Source: Spark 4.1.1, KafkaOffsetRangeCalculator: one task per partition. A warning if the topics together have enough."""
    for job, source in _sources(subject):
        wanted = job.plan.parallelism.value
        together = sum(one.partitions for one in {one.topic: one for one in job.sources}.values())
        severity: Severity | None = "warning" if together >= wanted else None
        if source.partitions < wanted and not job.has_load:
            where = job.place(f"sources.{source.name}.partitions", f"sources.{source.name}", "parallelism")
            yield Fault(
                where, f"{source.topic}: {source.partitions} for a parallelism of {wanted}", f"{wanted} partitions", severity=severity
            )


@rule(
    "LINT-051",
    "error",
    "idle task slots",
    why="no stage has enough tasks: idle slots cost money and do nothing",
    fix="reduce slots or executors, or increase parallelism and partitions",
)
def idle_slots(subject: Subject) -> Iterator[Fault]:
    """Source: Spark: a stage runs as many tasks as it has. An error if executors are idle, an info if only the last is partly idle."""
    for job in subject.jobs:
        executors, slots, used = job.plan.totals.executors, job.plan.pods.executor.slots or 1, job.plan.tasks_at_a_time
        idle = executors * slots - used
        if idle > 0:
            severity: Severity | None = None if idle >= slots else "info" if executors > 1 else "warning"
            given = f"{executors * slots} slots, {used} used"
            yield Fault(job.place("executor.slots", "executor"), given, f"{used} slots", severity=severity)


@rule(
    "LINT-052",
    "warning",
    "upgrade skips records",
    why="a stateless upgrade has no checkpoint, and latest starts at the newest record: records written in between are never read",
    fix="startingOffsets: committed-or-latest or earliest, or upgradeMode: last-state",
)
def skipped_by_upgrades(subject: Subject) -> Iterator[Fault]:
    """Source: Spark: starting offsets apply only to a query without a checkpoint."""
    for job, source in _sources(subject):
        if job.upgrade_mode == "stateless" and source.starting_offsets == "latest":
            where = job.place(f"sources.{source.name}.startingOffsets", f"sources.{source.name}")
            yield Fault(where, "startingOffsets: latest with upgradeMode: stateless", "offsets that survive an upgrade")


@rule(
    "LINT-053",
    "warning",
    "idle partitions stall windows and joins",
    why="the watermark is the minimum over all partitions: one without new records holds it back, state grows and no results are emitted",
    fix="add idleness: 2m next to outOfOrderness",
)
def no_idleness(subject: Subject) -> Iterator[Fault]:
    """Source: Penstock's watermark, as Flink's per-split watermarks."""
    for job, source in _sources(subject):
        if source.has_time and not source.has_idleness and (source.partitions > 1 or len(job.sources) > 1):
            where = job.place(f"sources.{source.name}.time", f"sources.{source.name}")
            yield Fault(where, f"{source.name}: no idleness", "time.idleness")


@rule(
    "LINT-055",
    "warning",
    "shuffle partitions do not match the slots",
    why="fewer leave slots idle after a shuffle; many more create small tasks and state stores, each with its own files in every "
    "batch. The first run fixes the number; changing it later requires repartitioning the state",
    fix="remove it: the plan sets it to the parallelism",
)
def unfit_shuffle(subject: Subject) -> Iterator[Fault]:
    """Source: Spark: the offset log fixes spark.sql.shuffle.partitions; the number of stores is partitions times operators."""
    own = {conf.name: conf for conf in subject.confs}
    for job in subject.jobs:
        text = own[job.name].conf.get(SHUFFLE_PARTITIONS, "").strip() if job.name in own else ""
        if text.isdecimal():
            slots = job.plan.totals.executors * (job.plan.pods.executor.slots or 1)
            busy = min(slots, job.plan.parallelism.value)
            if not busy <= int(text) <= PARTITIONS_A_SLOT * slots:
                where = own[job.name].place(SHUFFLE_PARTITIONS)
                yield Fault(where, f"{text} for {slots} slots", f"{busy} to {PARTITIONS_A_SLOT * slots}")


@rule(
    "LINT-056",
    "error",
    "infeasible plan",
    why="the job cannot start or cannot keep up, regardless of what Karpenter provisions",
    fix="run penstock size",
)
def infeasible(subject: Subject) -> Iterator[Fault]:
    """Source: the violations for which `penstock size` exits 3."""
    for job in subject.jobs:
        for violation in (violation for violation in job.plan.violations if violation.code not in _RULES_OF_THEIR_OWN):
            at = next((where.at for where in job.fields.values() if where.path == violation.path), job.where.at)
            given = f"{violation.code}: {violation.title}" + (f" ({violation.given})" if violation.given else "")
            yield Fault(Where(path=violation.path or job.where.path, at=at), given, violation.need, violation.fix)


@rule(
    "LINT-057",
    "warning",
    "RocksDB may exceed the executor's memory overhead",
    why="state stores use native memory for caches and write buffers: Kubernetes kills the executor when its pod exceeds its memory limit",
    fix=f"remove {BOUNDED_ROCKSDB}: false, or more memory overhead for the executor",
)
def unbounded_rocksdb(subject: Subject) -> Iterator[Fault]:
    """Source: Spark 4.1.1: an instance has a cache of 8 MB and two write buffers of 64 MB; with boundedMemoryUsage, as in Penstock's
    sessions, all instances of an executor have 500 MB together.
    """
    for job in subject.jobs:
        conf = {key.lower(): value for key, value in job.plan.spark_conf.items()}
        bounded = conf.get(BOUNDED_ROCKSDB.lower(), "true").lower() == "true"
        if job.state_backend != "rocksdb" or not job.stateful_operators:
            continue
        shuffle = int(job.plan.spark_conf.get(SHUFFLE_PARTITIONS, "200"))
        needed = state_memory("rocksdb", 1, shuffle * job.stateful_operators, job.plan.totals.executors, bounded=bounded)
        overhead_mib = job.plan.pods.executor.overhead_mib
        if needed.native_mib > overhead_mib:
            given = f"{needed.stores} stores per executor may use {needed.native_mib:,} MiB; the overhead is {overhead_mib:,} MiB"
            yield Fault(job.place("executor.memory", "executor"), given, "a sufficient overhead")


@rule(
    "LINT-058",
    "warning",
    "driver too small for its tasks",
    why="the driver keeps each task of a stage, and those of earlier stages that Spark's status store remembers: without heap for them it "
    "spends its time collecting garbage, then fails, and all queries restart",
    fix="more memory for the driver, or a lower spark.ui.retainedStages",
)
def small_driver(subject: Subject) -> Iterator[Fault]:
    """Source: Spark 4.3.0, AppStatusListener: tasks of up to spark.ui.retainedStages stages; measured by `benchmarks.driver_memory`."""
    for job in subject.jobs:
        heap_mib, needs = job.plan.pods.driver.heap_mib, job.plan.driver_needs
        if heap_mib < needs.heap_mib:
            where = job.place("driver.memory", "driver.heap", "parallelism")
            yield Fault(where, f"a heap of {heap_mib:,} MiB", f"{needs.heap_mib:,} MiB for {driver_text(needs)}")


@rule(
    "LINT-059",
    "warning",
    "executor overhead too small for Python",
    why="Python workers, Arrow's batches and RocksDB use memory outside of the heap: Kubernetes kills the executor when its pod exceeds "
    "its memory limit",
    fix="more memory or fewer slots for the executor, or a larger spark.executor.memoryOverhead",
)
def small_overhead(subject: Subject) -> Iterator[Fault]:
    """Source: Spark starts a worker for each Python operator of a running task; measured by `benchmarks.executor_memory`."""
    for job in subject.jobs:
        executor, parts = job.plan.pods.executor, job.plan.executor_overhead
        has_mib = executor.overhead_mib + executor.pyspark_mib
        # RocksDB alone has a rule of its own.
        if parts.python_workers and has_mib < parts.needed_mib:
            where = job.place("executor.memory", "executor.heap", "executor")
            yield Fault(where, f"{has_mib:,} MiB", f"{parts.needed_mib:,} MiB: {overhead_text(parts)}")


@rule(
    "LINT-067",
    "warning",
    "no room for rows out of order",
    why="the watermark of a partition is its newest row: each older row that comes in a later micro-batch is late, and missing in windows "
    "and joins",
    fix="outOfOrderness: 10s, or as far as rows of a partition are apart; allowedLateness, if results are to wait for them instead",
)
def no_out_of_orderness(subject: Subject) -> Iterator[Fault]:
    """Source: Penstock's watermark: the newest event time of a partition less outOfOrderness, whose default is 0 as with Flink's
    forMonotonousTimestamps.
    """
    for job, source in _sources(subject):
        if source.out_of_order_ms == 0:
            where = job.place(f"sources.{source.name}.outOfOrderness", f"sources.{source.name}.time", f"sources.{source.name}")
            yield Fault(
                where, f"{source.name}: an outOfOrderness of 0", "time.outOfOrderness; 1ms if each partition is in the order of event time"
            )


@rule(
    "LINT-064",
    "warning",
    "ephemeral storage too small",
    why="the kubelet evicts a pod whose state, shuffle files and logs exceed its limit: its tasks and its state start again elsewhere",
    fix="remove ephemeralStorage: the plan computes it; or more of it",
)
def small_storage(subject: Subject) -> Iterator[Fault]:
    """Source: Kubernetes, "Local ephemeral storage": a pod's emptyDir volumes and logs count."""
    for job in subject.jobs:
        plan, pods = job.plan, job.plan.pods
        for kind, pod, needs in (("driver", pods.driver, plan.driver_storage), ("executor", pods.executor, plan.executor_storage)):
            if pod.request_ephemeral_storage_mib < needs.needed_mib:
                where = job.place(f"{kind}.ephemeralStorage", kind)
                given = f"{pod.request_ephemeral_storage_mib:,} MiB for the {kind}"
                yield Fault(where, given, f"{needs.needed_mib:,} MiB: {storage_text(needs)}")


@rule(
    "LINT-069",
    "warning",
    "profile of another version of the job",
    why="the app, or what the spec says of its work, has changed since it was measured: a slot may process less than is planned",
    fix="penstock profile SPEC",
)
def outdated_profile(subject: Subject) -> Iterator[Fault]:
    """Source: the hashes in the file of `penstock profile`, compared with the job as it is."""
    for job in subject.jobs:
        throughput = job.plan.throughput
        if throughput is not None and throughput.profile_changes:
            changed = " and ".join(throughput.profile_changes)
            yield Fault(job.place("load.profile", "load"), f"its {changed} changed", "a profile of the job as it is")


def _sources(subject: Subject) -> Iterator[tuple[LintedJob, LintedSource]]:
    for job in subject.jobs:
        for source in job.sources:
            yield job, source
