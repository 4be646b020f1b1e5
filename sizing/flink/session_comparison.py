"""Flink's session cluster and the session that replaces it, row by row, as `penstock.sizing.flink.comparison` has one job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.sizing.flink.comparison import Row, Unit, control_rows, shuffle_tasks, task_rows
from penstock.sizing.flink.job import FlinkJob
from penstock.sizing.plan.session import SessionPlan
from penstock.sizing.planned import Plan
from penstock.sizing.units import MIB


def compare_session(
    jobs: Sequence[FlinkJob], task_managers: int, plans: Mapping[str, Plan], session: SessionPlan, triggers_ms: Mapping[str, int | None]
) -> tuple[Row, ...]:
    """The rows of the comparison: of the session, of each of its jobs, of an executor and of the driver.

    Args:
        jobs: of the cluster, at least one; all have its TaskManagers and JobManager.
        task_managers: of the cluster.
        plans: job -> its plan.
        session: the plan of them together.
        triggers_ms: job -> trigger of its spec; None: Penstock's default.
    """
    stores = -(-sum(shuffle_tasks(plan) for plan in plans.values()) // session.totals.executors)
    return (
        *_session(jobs, task_managers, session),
        *(row for job in jobs for row in _job(job, plans[job.name], triggers_ms[job.name])),
        *task_rows(jobs[0], session.pods.executor, stores),
        *control_rows(jobs[0], session.pods.driver),
    )


def _session(jobs: Sequence[FlinkJob], task_managers: int, session: SessionPlan) -> list[Row]:
    of, executor, driver = jobs[0], session.pods.executor, session.pods.driver
    added = "Flink fills a TaskManager with the slots of several jobs; a session has the executors of its jobs, each job's rounded up"
    flink_bytes = (task_managers * of.task_manager.pod_mib + of.job_managers * of.job_manager.pod_mib) * MIB
    flink_cpu = task_managers * of.task_manager_cpu_millicores + of.job_managers * of.job_manager_cpu_millicores
    spark_bytes = (session.totals.executor_memory_mib + driver.memory_mib) * MIB
    spark_cpu = session.totals.executor_cpu_millicores + driver.request_cpu_millicores
    tasks = sum(job.parallelism for job in jobs)
    return [
        _row("jobs", len(jobs), len(session.jobs), "count", "a job is changed without the others; in Spark by a deploy"),
        _row("pods that run tasks", task_managers, session.totals.executors, "count", added),
        _row("task slots in all", task_managers * of.slots, (executor.slots or 1) * executor.count, "count", "any of them runs any job"),
        _row("tasks at a time", tasks, session.tasks_at_a_time, "count", "Flink's of every operator of all jobs; Spark's jobs take turns"),
        _row("memory of all pods", flink_bytes, spark_bytes, "bytes", "requests, with JobManager and driver"),
        _row("CPU of all pods", flink_cpu, spark_cpu, "millicores", "requests, with JobManager and driver"),
    ]


def _job(job: FlinkJob, plan: Plan, trigger_ms: int | None) -> list[Row]:
    return [
        Row(of="job", name=f"{job.name}: tasks", flink=job.parallelism, spark=plan.tasks_at_a_time, unit="count", note="at a time"),
        Row(
            of="job",
            name=f"{job.name}: checkpoint",
            flink=job.checkpoint_interval_ms,
            spark=trigger_ms,
            unit="ms",
            note="in Spark the trigger, which is the latency as well",
        ),
    ]


def _row(name: str, flink: int, spark: int, unit: Unit, note: str) -> Row:
    return Row(of="session", name=name, flink=flink, spark=spark, unit=unit, note=note)
