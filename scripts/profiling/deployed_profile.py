"""Measures a job as it runs in an environment, by what its driver has said about its micro-batches in the job's log group.

CPU seconds are not there, and a job that keeps up reads micro-batches of about one size: what they take without rows is then part of their
rate, which is too low rather than too high.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from botocore.exceptions import ClientError

from penstock.infra.environment import Environment
from penstock.infra.environment_file import argument_of
from penstock.infra.environment_file import load as load_environment
from penstock.infra.plans import plans
from penstock.jobs.configuration.plan_hash import plan_hash
from penstock.jobs.document import parse_text
from penstock.jobs.spec import SpecFile
from penstock.jobs.spec.job import StreamingJob
from penstock.jobs.spec.job_profile import Digest, JobProfile, ProfiledRun
from penstock.jobs.storage.driver_runs import DriverRun
from penstock.jobs.storage.generation import Generation
from penstock.scripts.operations.deployed_job import DeployedJob
from penstock.scripts.planning.app_path import folders_of_apps
from penstock.scripts.profiling.errors import EventsNotFound, JobNotRunning, TooFewMicroBatches
from penstock.scripts.progress import Step, Steps
from penstock.scripts.provisioning.aws_access import translated
from penstock.sizing.load.measured_job import MeasuredJob
from penstock.sizing.load.observation import LEAST_MICRO_BATCHES, MicroBatch, SlotsRun, rates_of
from penstock.sizing.load.spread import Spread
from penstock.sizing.planned import Plan

# Ours: long enough for a thousand micro-batches of 10 s, short enough to be of today's load.
_SINCE = timedelta(hours=6)
# After a driver's start, code is compiled.
_WARM_UP = timedelta(seconds=60)
# A longer pause is not a restart, but a job that somebody has stopped.
_LONGEST_RESTART_S = 3600.0
_PAGES = 100
_PATTERN = '{ $.event = "committed" }'


class Committed(NamedTuple):
    """An event ``committed`` of a driver, and when it was logged."""

    at: datetime
    event: Mapping[str, Any]


def measured(name: str, spec: SpecFile, app_path: Sequence[Path], steps: Steps) -> JobProfile:
    """The profile of a job that runs.

    Args:
        name: of the environment, or its file.
        spec: of the job, as it runs there.
        app_path: folders of its app, besides those of the environment.
        steps: shows progress.

    Raises:
        PenstockError: DEP-061, DEP-062, PROF-006, and what is wrong with the environment, AWS or the credentials.
    """
    environment = load_environment(name)
    folders = folders_of_apps(app_path, environment)
    job = spec.job.metadata.name
    steps.title(f"profile of {job} as it runs in {environment.name}")
    with steps.at("job", f"reading the records of {job}") as step:
        deployed, generation, planned = _running(environment, spec, folders)
        runs = deployed.runs.read().runs
        step.said = f"generation {generation.number}, {planned.tasks_at_a_time} tasks at a time"
    with steps.at("events", f"reading the log group of {job}") as step:
        events = _of_first_query(_events(deployed, max(generation.began, datetime.now(UTC) - _SINCE), step))
        step.said = f"{len(events):,} micro-batches"
    return profile_of(spec, folders, environment.name, planned.tasks_at_a_time, events, runs)


def profile_of(
    spec: SpecFile, app_path: Sequence[Path], environment: str, slots: int, events: Sequence[Committed], runs: Sequence[DriverRun]
) -> JobProfile:
    """The profile from what a driver has said.

    Args:
        spec: of the job.
        app_path: folders of its app.
        environment: its name.
        slots: tasks at a time.
        events: of one query, in their order.
        runs: of the job's drivers, in their order.

    Raises:
        TooFewMicroBatches: PROF-006.
    """
    warm = [one.event for one in events if not any(run.started <= one.at < run.started + _WARM_UP for run in runs)]
    batches = [MicroBatch(event["rows"], max(event["durationMs"], 1) / 1000) for event in warm if event["rows"] > 0]
    if len(batches) < LEAST_MICRO_BATCHES:
        given = f"{len(batches)} with records in {_SINCE.total_seconds() / 3600:g} hours, {_WARM_UP.seconds} s or more after a start"
        fix = "wait until the job has run longer"
        raise TooFewMicroBatches(path=spec.job.metadata.name, given=given, need=f"at least {LEAST_MICRO_BATCHES}", fix=fix)
    run = SlotsRun(slots, batches)
    rates, date = rates_of([run]), events[-1].at.date().isoformat()
    restarts = list(restarts_s(events, runs))
    sizes = list(_bytes_per_row(warm))
    job = MeasuredJob(
        events_per_slot_per_s=rates.events_per_slot_per_s,
        batch_overhead_s=rates.batch_overhead_s,
        restart_s=Spread.of(restarts) if restarts else None,
        restart_of_deployment=True,
        bytes_per_key=Spread.of(sizes) if sizes else None,
        date=date,
        source=f"{environment} up to {date} at {slots} slots",
    )
    profiled = ProfiledRun(
        slots=slots,
        micro_batches=len(batches),
        events=sum(batch.rows for batch in batches),
        events_per_s=run.events_per_s(rates.batch_overhead_s.typical),
    )
    return JobProfile(job=spec.job.metadata.name, digest=Digest.of(spec, app_path), measured=job, runs=(profiled,))


def restarts_s(events: Sequence[Committed], runs: Sequence[DriverRun]) -> Iterator[float]:
    """Seconds from the end of each driver that has failed to the first commit of the next."""
    for before, after in pairwise(runs):
        if before.ended is None or before.failure is None:
            continue
        first = next((one.at for one in events if one.at > after.started), None)
        if first is not None and (took_s := (first - before.ended).total_seconds()) <= _LONGEST_RESTART_S:
            yield took_s


def _bytes_per_row(events: Sequence[Mapping[str, Any]]) -> Iterator[float]:
    for event in events:
        state = event.get("state") or {}
        if state.get("puts"):
            yield state["putBytes"] / state["puts"]


def _running(environment: Environment, spec: SpecFile, folders: Sequence[Path]) -> tuple[DeployedJob, Generation, Plan]:
    """The job, its generation and its plan, if it runs there as it is here.

    Raises:
        JobNotRunning: DEP-062.
    """
    name = spec.job.metadata.name
    of_environment = {one.name: one for one in plans(environment).jobs}
    if name not in of_environment:
        given = f"jobs {', '.join(of_environment) or 'none'}"
        raise _not_running(environment, name, given, "the job among those of the environment", "name the environment that has it")
    job = DeployedJob(environment, name)
    status = job.status()
    if status.state != "running":
        given = f"{status.state}{f': {status.cause}' if status.cause else ''}"
        raise _not_running(environment, name, given, "a job that runs", f"penstock status {argument_of(environment)}")
    generation = job.records.newest(name)
    planned = of_environment[name].plan
    if changed := _changed(job, generation, spec, folders, planned):
        need = f"the job as it is here: its {' and '.join(changed)} differ"
        raise _not_running(
            environment, name, f"generation {generation.number}", need, f"deploy it first: penstock deploy {argument_of(environment)}"
        )
    return job, generation, planned


def _changed(job: DeployedJob, generation: Generation, spec: SpecFile, folders: Sequence[Path], planned: Plan) -> list[str]:
    here, there = Digest.of(spec, folders), generation.fingerprint
    recorded = job.records.folder.recorded_spec(generation.number)
    changed = ["app"] if here.app != there.app else []
    if recorded is not None:
        document = parse_text(recorded.text, f"generation {generation.number} of {job.name}")
        old = SpecFile(path=spec.path, document=document, job=document.parse(StreamingJob))
        changed += ["spec"] if Digest.of(old, folders).spec != here.spec else []
    return changed + (["plan"] if there.plan != plan_hash(planned) else [])


def _events(job: DeployedJob, since: datetime, step: Step) -> list[Committed]:
    """The events of the job's drivers, in their order.

    Raises:
        EventsNotFound: DEP-061.
    """
    group = f"/penstock/{job.environment.name}/jobs/{job.name}"
    found: list[Committed] = []
    asked = {"logGroupName": group, "startTime": round(since.timestamp() * 1000), "filterPattern": _PATTERN}
    with translated(f"logs in {job.environment.spec.region}"):
        try:
            pages = job.aws.client("logs").get_paginator("filter_log_events").paginate(**asked)
            for number, page in enumerate(pages):
                found += filter(None, (_committed(event) for event in page["events"]))
                step.watch(f"{len(found):,} micro-batches in {group}")
                if number == _PAGES:
                    break
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceNotFoundException":
                raise
            need, fix = "the job's log group, of the stack observability", f"penstock deploy {argument_of(job.environment)}"
            raise EventsNotFound(path=group, given="no such log group", need=need, fix=fix) from None
    if not found:
        need = f"events of its driver since {since:%Y-%m-%d %H:%M} UTC"
        raise EventsNotFound(path=group, given="none", need=need, fix="check that Fluent Bit runs: docs/stacks/observability.md")
    return sorted(found, key=lambda one: one.at)


def _committed(logged: Mapping[str, Any]) -> Committed | None:
    """The event in a record of Fluent Bit's; its `log` has the whole line, the record itself a few of its fields."""
    with contextlib.suppress(ValueError, TypeError):
        record = json.loads(logged["message"])
        line = record.get("log")
        event = json.loads(line) if isinstance(line, str) else record
        if event.get("event") == "committed" and isinstance(event["rows"], int) and isinstance(event["durationMs"], int | float):
            return Committed(datetime.fromtimestamp(logged["timestamp"] / 1000, UTC), event)
    return None


def _of_first_query(events: Sequence[Committed]) -> list[Committed]:
    """Those of the query with the most rows; a job with one query has no names in its events."""
    rows: dict[str, int] = {}
    for one in events:
        name = str(one.event.get("query", ""))
        rows[name] = rows.get(name, 0) + one.event["rows"]
    most = max(rows, key=lambda name: rows[name])
    return [one for one in events if str(one.event.get("query", "")) == most]


def _not_running(environment: Environment, job: str, given: str, need: str, fix: str) -> JobNotRunning:
    return JobNotRunning(path=f"job {job} of {environment.name}", given=given, need=need, fix=fix)
