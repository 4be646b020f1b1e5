"""``penstock rewind``: shows what a job would read and write again from a time on, asks, and rewinds it; or undoes that."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast, get_args

from pydantic import TypeAdapter, ValidationError

from penstock.jobs.spec.times import TIME_NEEDED, TimeMs
from penstock.scripts.cli.brokers_arguments import access_of, add_brokers_arguments
from penstock.scripts.cli.environment_argument import add_environment_argument, chosen
from penstock.scripts.errors import WrongUsage
from penstock.scripts.operations.deployed_job import DeployedJob, add_job_argument
from penstock.scripts.planning.app_path import add_app_path_argument
from penstock.scripts.process.interrupts import end_in_order
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning.confirmation import confirm
from penstock.scripts.render.node_shares import counted
from penstock.scripts.render.screen import Screen, screen_of
from penstock.scripts.render.table import facts
from penstock.sizing.units import duration_ms

if TYPE_CHECKING:
    from penstock.jobs.storage.generation import Generation
    from penstock.jobs.storage.rewind_request import RewindRequest, StartPoint
    from penstock.scripts.operations.rewind_preview import Counted

_NEEDED = "a time with its offset from UTC as 2026-11-21T12:00:00+05:30, epoch milliseconds, earliest, latest, or spec"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_shared_arguments(parser)
    where = parser.add_mutually_exclusive_group(required=True)
    add_by_argument(where)
    where.add_argument("--to", type=start_point, metavar="START", help=f"read the records from there on again: {_NEEDED} (startingOffsets)")
    where.add_argument("--undo", action="store_true", help="go back to the checkpoint before the last rewind, with its state")
    parser.add_argument("--with-state", action="store_true", help="go on from the last micro-batch before that time, with its state")


def add_shared_arguments(parser: argparse.ArgumentParser) -> None:
    """Those that do not say where a job begins to read."""
    add_environment_argument(parser)
    add_job_argument(parser)
    parser.add_argument("--plan-only", action="store_true", help="show what is read and written again, and exit")
    parser.add_argument("--yes", action="store_true", help="skip the confirmation prompt")
    add_brokers_arguments(parser)
    add_app_path_argument(parser)


def add_by_argument(where: argparse._MutuallyExclusiveGroup) -> None:
    """``--by DURATION``."""
    where.add_argument("--by", type=duration_argument, metavar="DURATION", help="read the records of this long again, such as 1h")


def start_point(text: str) -> StartPoint:
    """Where a job begins to read, as given on the command line.

    Raises:
        ArgumentTypeError: it is none.
    """
    from penstock.jobs.storage.rewind_request import NamedStart

    if text in get_args(NamedStart):
        return cast("NamedStart", text)
    try:
        return TypeAdapter(TimeMs).validate_python(text)
    except ValidationError:
        raise argparse.ArgumentTypeError(f"{_NEEDED}, not {text}") from None


def duration_argument(text: str) -> int:
    """Milliseconds of a duration given on the command line.

    Raises:
        ArgumentTypeError: it is none.
    """
    try:
        return duration_ms(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def time_argument(text: str) -> int:
    """Epoch milliseconds of a time given on the command line.

    Raises:
        ArgumentTypeError: it is none.
    """
    try:
        return TypeAdapter(TimeMs).validate_python(text)
    except ValidationError:
        raise argparse.ArgumentTypeError(f"{TIME_NEEDED}, not {text}") from None


def run(arguments: argparse.Namespace) -> int:
    """Shows what the rewind, or its undo, means, and does it.

    Returns:
        0.

    Raises:
        PenstockError: what is wrong with the time, the job, the records in its folder or the cluster.
    """
    end_in_order()
    job = DeployedJob(chosen(arguments), arguments.job)
    if arguments.undo and arguments.with_state:
        fix = "penstock rewind --undo, which goes back to a checkpoint with its state"
        raise WrongUsage(path="--with-state", given="--undo", need="--by or --to", fix=fix)
    if arguments.undo:
        return _undo(job, arguments)
    if arguments.with_state:
        return _with_state(job, arguments)
    return begin_anew(job, arguments, f"Rewind {job.name} of {job.environment.name}?")


def begin_anew(job: DeployedJob, arguments: argparse.Namespace, question: str) -> int:
    """Shows what it means that a job begins to read somewhere with an empty checkpoint, asks, and does it.

    Args:
        job: which.
        arguments: with `by` in milliseconds or `to`, a start.
        question: that is asked.

    Returns:
        0.

    Raises:
        PenstockError: what is wrong with the start, the job, the records in its folder or the cluster.
    """
    from penstock.jobs.driver import rewind

    newest, screen = job.records.newest(job.name), screen_of(sys.stdout, os.environ)
    start = arguments.to if arguments.by is None else round(time.time() * 1000) - arguments.by
    rewind.refuse_what_has_no_past(job.spec.job.spec, start)
    rewind.refuse_the_future(start)
    begun = None if arguments.plan_only else job.records.begun(newest, start)
    if begun is not None:
        # An interrupted command's: another rewind would do the same again.
        _go_on(job, begun)
        return 0
    _print(_shown(job, newest, start, arguments, screen))
    if _agreed(arguments, question):
        _rewind(job, _request(job, newest, to=start))
    return 0


def _with_state(job: DeployedJob, arguments: argparse.Namespace) -> int:
    """Takes a savepoint as of that time, and starts from it."""
    from penstock.jobs.driver import rewind
    from penstock.jobs.storage.stored_state import StoredState
    from penstock.scripts.savepoints.starting_over import StartingOver

    to_ms = arguments.to if arguments.by is None else round(time.time() * 1000) - arguments.by
    if isinstance(to_ms, str):
        need, fix = "a time", "penstock rewind --to TIME --with-state, or without --with-state"
        raise WrongUsage(path="--with-state", given=f"--to {to_ms}", need=need, fix=fix)
    rewind.refuse_the_future(to_ms)
    newest, screen = job.records.newest(job.name), screen_of(sys.stdout, os.environ)
    over = StartingOver(job, newest, Steps())
    until, folder = datetime.fromtimestamp(to_ms / 1000, UTC), job.savepoints.of(f"rewind-{to_ms}")
    if not arguments.plan_only and folder.begun() and over.gone_on_with(folder, folder.manifest().queries):
        return 0
    checkpoint, of = over.checkpoint_as_of(until)
    queries = over.queries(checkpoint, of)
    state = over.repartitioned(checkpoint.uri, {name: StoredState.of(checkpoint.of_query(name)) for name in queries})
    _print(over.shown(f"goes back to its state of {until.isoformat(timespec='milliseconds')}", queries, screen, state))
    if _agreed(arguments, f"Rewind {job.name} of {job.environment.name} with its state?"):
        over.start_from(over.taken(checkpoint, of, folder))
    return 0


def _undo(job: DeployedJob, arguments: argparse.Namespace) -> int:
    from penstock.scripts.operations.undo_preview import undo_lines

    newest, screen = job.records.newest(job.name), screen_of(sys.stdout, os.environ)
    pending = job.records.pending(newest)
    if pending is not None and pending.back_to is None:
        what = "rewind" if pending.to is not None else f"start from {pending.start_from}"
        _print(iter([f"the {what} of {job.name} that was requested at {pending.asked:%Y-%m-%d %H:%M:%S} UTC has not begun"]))
        if _agreed(arguments, "Withdraw it, and run the job as before?"):
            _withdraw(job, pending)
        return 0
    back = job.records.before_the_rewind(job.name, newest)
    _print(undo_lines(job.spec.job.spec, job.records, newest, back, screen))
    if _agreed(arguments, f"Go back to checkpoint {back.checkpoint} of {job.name} of {job.environment.name}?"):
        _rewind(job, _request(job, newest, back_to=back.number))
    return 0


def _agreed(arguments: argparse.Namespace, question: str) -> bool:
    if not arguments.plan_only and not arguments.yes:
        confirm(question, "yes")
    return not arguments.plan_only


def _go_on(job: DeployedJob, begun: RewindRequest) -> None:
    from penstock.scripts.operations.rewinding import Rewinding

    with job.cluster() as api:
        Rewinding(job.running(api), job.records, Steps()).go_on(begun)


def _withdraw(job: DeployedJob, pending: RewindRequest) -> None:
    from penstock.scripts.operations.rewinding import Rewinding

    with job.cluster() as api:
        Rewinding(job.running(api), job.records, Steps()).withdraw(pending)


def _rewind(job: DeployedJob, request: RewindRequest) -> None:
    from penstock.scripts.operations.rewinding import Rewinding  # the client of Kubernetes takes long to import

    steps = Steps()
    with job.cluster() as api:
        Rewinding(job.running(api), job.records, steps).carry_out(request)


def _request(job: DeployedJob, newest: Generation, *, to: StartPoint | None = None, back_to: int | None = None) -> RewindRequest:
    from penstock.jobs.storage.rewind_request import RewindRequest

    spec = job.spec.job.spec
    asked = datetime.now(UTC)
    return RewindRequest(after=newest.number, to=to, back_to=back_to, spec_rewind_to=spec.rewind_to, asked=asked, by=job.caller)


def _shown(job: DeployedJob, newest: Generation, start: StartPoint, arguments: argparse.Namespace, screen: Screen) -> Iterator[str]:
    from penstock.scripts.operations import rewind_preview as preview

    read = preview.counted(job.spec, start, lambda: access_of(job.environment, arguments))
    yield f"{job.name} reads its sources {preview.begins(start)}, as generation {newest.number + 1} with an empty checkpoint"
    yield ""
    yield from preview.topics_table(read, screen)
    yield ""
    yield from facts(_facts(job, newest, read, start), screen)
    if read.records or not read.topics:
        yield ""
        yield from preview.sinks_table(job.spec.job.spec, screen)


def _facts(job: DeployedJob, newest: Generation, read: Counted, start: StartPoint) -> Iterator[tuple[str, str]]:
    from penstock.scripts.operations import rewind_preview as preview

    if read.why_not is None:
        yield "takes", preview.takes(read.records, _capacity(job))
        skipped = preview.skipped(read, job.records, newest)
        if skipped:
            yield "skipped", f"{counted(skipped, 'record')} that the job has not read yet"
    if any(query.operators for query in newest.queries.values()):
        yield "state", "windows, joins and keyed state begin empty: those that were open then have the rows since then alone"
    yield "checkpoint", f"{newest.checkpoint} stays where it is"
    if newest.rewind is not None and newest.rewind.to == start:
        yield "again", f"checkpoint {newest.checkpoint} has begun with a rewind to there already"
    pending = job.records.pending(newest)
    if pending is not None and pending.to != start:
        yield "instead of", f"the rewind that {pending.by or 'somebody'} has requested at {pending.asked:%Y-%m-%d %H:%M:%S} UTC"


def _capacity(job: DeployedJob) -> float | None:
    """Events per second that the plan of the job can process; None if it is not known, as without a load in the spec."""
    from penstock.scripts.operations.planned_job import plan_of

    planned = plan_of(job.environment, job.name)
    return planned.throughput.capability.capacity_events_per_s if planned is not None and planned.throughput else None


def _print(lines: Iterator[str]) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
