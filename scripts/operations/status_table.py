"""The status of jobs as tables for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from penstock.jobs.storage.driver_runs import DriverRun
from penstock.scripts.operations.backlog import Backlog, PartitionBacklog
from penstock.scripts.operations.job_status import FailureReason, JobStatus, QueryStatus, State
from penstock.scripts.render.bytes_text import bytes_text
from penstock.scripts.render.screen import Screen
from penstock.scripts.render.table import UNBROKEN, Column, Row, Styled, facts, table

_STYLES: dict[State, str] = {
    "running": "green",
    "finished": "green",
    "stopping": "yellow",
    "stopped": "yellow",
    "not started": "yellow",
    "restarting": "red",
    "failed": "red",
    "lost": "red",
    "unreadable": "red",
}
_JOBS = (
    Column("job"),
    Column("state"),
    Column("for", right=True),
    Column("generation", right=True),
    Column("micro-batch", right=True),
    Column("age", right=True),
    Column("records in", right=True),
    Column("lag", right=True),
    Column("records/s", right=True),
    Column("caught up in", right=True),
    Column("watermark lag", right=True),
    Column("starts", right=True),
    Column("failures", right=True),
)
_RUNS = (
    Column("started", wraps=True),
    Column("ran for", right=True),
    Column("micro-batches", right=True),
    Column("driver"),
    Column("ended by", wraps=True),
)
_PARTITIONS = (
    Column("query"),
    Column("partition"),
    Column("next offset", right=True),
    Column("end of topic", right=True),
    Column("lag", right=True),
    Column("arrived/s", right=True),
)
_NONE = "-"
# What a nearly balanced backlog takes is beyond what a duration can be.
_LONGEST_S = 1_000 * 86_400.0
# Ours: below it a partition does not delay a micro-batch by much.
_SKEWED = 2.0


def jobs_table(jobs: Sequence[JobStatus], now: datetime, screen: Screen) -> list[str]:
    """A row for each query of each job, and below them the causes of states that are not as they should be, and of other failures."""
    lines = table(_JOBS, [row for job in jobs for row in _rows(job, now)], screen)
    for job in jobs:
        if job.cause:
            lines += ["", *facts([(f"{job.job}, {job.state}", job.cause)], screen)]
        # The last one is the cause already.
        reasons = job.reasons[1:] if job.state in ("restarting", "failed") else job.reasons
        if reasons:
            lines += ["", *facts([(f"{job.job}, failed", _reason(reason, now)) for reason in reasons], screen)]
    return lines


def runs_table(job: JobStatus, screen: Screen) -> list[str]:
    """The runs of a job's drivers, the last one first."""
    return table(_RUNS, [_run(run) for run in job.runs], screen)


def backlog_table(job: JobStatus, screen: Screen) -> list[str]:
    """What each query of a job has not read, by partition."""
    queries = [(query.name or job.job, query.backlog) for query in job.queries if query.backlog is not None]
    lines = facts([(name, _rates(backlog)) for name, backlog in queries], screen)
    rows = [_partition(name, one) for name, backlog in queries for one in backlog.partitions]
    return [*lines, "", *table(_PARTITIONS, rows, screen)] if rows else lines


def state_facts(job: JobStatus, screen: Screen) -> list[str]:
    """The size of a job's state, by query, beside what is planned for all of them."""
    sizes = [(query.name or job.job, bytes_text(query.state_bytes)) for query in job.queries if query.state_bytes is not None]
    planned = [] if job.planned_state_bytes is None else [("planned", f"{bytes_text(job.planned_state_bytes)}, uncompressed")]
    return facts([*sizes, *planned], screen)


def _rows(job: JobStatus, now: datetime) -> Iterator[Row]:
    lasts = duration(now - job.since) if job.since else _NONE
    first = (job.job, Styled(job.state, _STYLES[job.state]), lasts, str(job.generation or _NONE))
    counts = (str(job.starts), str(job.failures))
    yield (*first, *_query(job.queries[0] if job.queries else None, now), *counts)
    for query in job.queries[1:]:
        yield (f"{job.job}/{query.name}", "", "", "", *_query(query, now), "", "")


def _query(query: QueryStatus | None, now: datetime) -> tuple[str, ...]:
    if query is None or query.at is None or query.backlog is None:
        return (_NONE,) * 7
    behind = _NONE if query.watermark is None else duration(now - query.watermark)
    read = f"{query.total_records_in:,}"
    return str(query.micro_batch), duration(now - query.at), read, *_backlog(query.backlog), behind


def _backlog(backlog: Backlog) -> tuple[str, str, str]:
    rate = _NONE if backlog.read_per_s is None else f"{backlog.read_per_s:,.0f}"
    return _number(backlog.records), rate, _gone_in(backlog)


def _gone_in(backlog: Backlog) -> str:
    if backlog.gone_in_s is not None:
        return duration(timedelta(seconds=min(backlog.gone_in_s, _LONGEST_S)))
    return "never" if backlog.records and backlog.arrived_per_s is not None else _NONE


def _reason(reason: FailureReason, now: datetime) -> str:
    times = "once" if reason.times == 1 else f"{reason.times} times"
    return f"{times}, last {duration(now - reason.last)} ago: " + f"{reason.code}: {reason.what}".lstrip(": ")


def _partition(query: str, one: PartitionBacklog) -> Row:
    rate = _NONE if one.arrived_per_s is None else f"{one.arrived_per_s:,.1f}"
    return query, f"{one.topic}-{one.partition}", f"{one.next:,}", _number(one.latest), _number(one.records), rate


def _rates(backlog: Backlog) -> str:
    if backlog.read_per_s is None:
        return "rates are unknown before the second micro-batch"
    text = f"{backlog.read_per_s:,.1f} records/s read"
    if backlog.arrived_per_s is not None:
        text += f", {backlog.arrived_per_s:,.1f} arrived"
    text += f", over {backlog.micro_batches} micro-batch{'' if backlog.micro_batches == 1 else 'es'}"
    if backlog.records and backlog.seconds is not None:
        text += f"; {backlog.records:,} records are {duration(timedelta(seconds=min(backlog.seconds, _LONGEST_S)))} of arrivals"
    if backlog.skew is not None and backlog.skew.times >= _SKEWED:
        text += f"; {backlog.skew.topic}-{backlog.skew.partition} gets {backlog.skew.times:,.1f} times the records of the mean partition"
    return text


def _number(number: int | None) -> str:
    return _NONE if number is None else f"{number:,}"


def _run(run: DriverRun) -> Row:
    ran = duration(run.ended - run.started) if run.ended else _NONE
    return _moment(run.started), ran, str(run.micro_batches) if run.ended else _NONE, run.driver, _end(run)


def _end(run: DriverRun) -> str:
    if run.ended is None:
        return "it runs"
    if run.failure is None:
        return "a stop"
    at = f" at {run.failure.where}" if run.failure.where else ""
    return f"{run.failure.code}{at}: {run.failure.what}".lstrip(": ")


def _moment(moment: datetime | None) -> str:
    return _NONE if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def duration(length: timedelta) -> str:
    """In its two greatest units, as ``2h 5m``."""
    seconds = max(0, int(length.total_seconds()))
    parts = [(seconds // 86_400, "d"), (seconds // 3_600 % 24, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s")]
    shown = [(number, unit) for number, unit in parts if number][:2] or [(0, "s")]
    return UNBROKEN.join(f"{number}{unit}" for number, unit in shown)
