"""``penstock upgrade preview``: which rows a changed job would write that the one that runs does not. Nothing outside is written."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.infra.environment import Environment
from penstock.jobs.document import parse_text
from penstock.jobs.spec import SpecFile
from penstock.jobs.spec.job import StreamingJob
from penstock.jobs.storage.generation import Generation
from penstock.scripts.cli.brokers_arguments import access_of, add_brokers_arguments
from penstock.scripts.cli.output import as_text
from penstock.scripts.cli.rewind import duration_argument, time_argument
from penstock.scripts.errors import WrongUsage
from penstock.scripts.installation import app_packages
from penstock.scripts.operations.deployed_job import DeployedJob, add_job_argument
from penstock.scripts.planning.app_path import folders_of_apps
from penstock.scripts.preview.differences import OutputDifference
from penstock.scripts.preview.scratch_spec import refuse_what_has_no_offsets
from penstock.scripts.process.interrupts import end_in_order
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning.errors import NotPreviewed
from penstock.scripts.render.screen import Screen, screen_of
from penstock.scripts.render.table import Column, facts, table
from penstock.sizing.planned import SCHEMA_VERSION

if TYPE_CHECKING:
    from penstock.scripts.preview.previewing import Code, Started

_COLUMNS = (
    Column("output"),
    Column("by"),
    *(Column(name, right=True) for name in ("rows before", "rows after", "added", "gone", "changed")),
)


def add_preview_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments beside environment, ``--app-path`` and ``-o``."""
    add_job_argument(parser)
    when = parser.add_mutually_exclusive_group(required=True)
    when.add_argument("--last", type=duration_argument, metavar="DURATION", help="process the records of this long, such as 1h")
    when.add_argument("--since", type=time_argument, metavar="TIME", help="process the records from then on")
    parser.add_argument(
        "--before",
        action="append",
        type=Path,
        default=[],
        metavar="DIR",
        help="folder to search first for the app's module as it runs; repeatable (default: the code here, with the spec that runs)",
    )
    parser.add_argument("--without-state", action="store_true", help="let both begin with empty state")
    parser.add_argument(
        "--key",
        action="append",
        type=_key,
        default=[],
        metavar="SINK=COLUMN,...",
        help="compare the rows of a sink by these columns (default: the sink's key); repeatable",
    )
    parser.add_argument("--ignore", action="append", default=[], metavar="COLUMN", help="leave a column out; repeatable")
    parser.add_argument("--examples", type=_count, default=5, metavar="N", help="rows of each kind to show (default: 5)")
    add_brokers_arguments(parser)


def preview(arguments: argparse.Namespace, environment: Environment) -> int:
    """Runs both versions of a job, and shows which rows differ.

    Returns:
        0, also if rows differ.

    Raises:
        PenstockError: what is wrong with the job, its records, or either version of its code.
    """
    # The clients take long to import.
    from penstock.jobs.driver.rewind import refuse_the_future
    from penstock.scripts.preview.previewing import Code, Comparing, Preview

    end_in_order()
    since_ms = arguments.since if arguments.last is None else round(time.time() * 1000) - arguments.last
    refuse_the_future(since_ms)
    job, steps = DeployedJob(environment, arguments.job), Steps()
    newest = _newest(job)
    old = _recorded(job, newest)
    _refuse(arguments, old, job.spec)
    folders = tuple(one.resolve() for one in (job.spec.path.parent, *folders_of_apps(arguments.app_path, environment)))
    before = _before(old, [one.resolve() for one in arguments.before], folders)
    comparing = Comparing(dict(arguments.key), arguments.ignore, arguments.examples)
    kafka = access_of(environment, arguments)
    packages = app_packages.install(app_packages.checked(job.spec), steps)
    with tempfile.TemporaryDirectory(prefix="penstock-preview-") as name:
        own = Preview(job, newest, before, Code("after", job.spec, folders), kafka, packages, Path(name), steps)
        started, outputs = own.run(since_ms, comparing, with_state=not arguments.without_state)
    notes = [*_notes(before, newest), *([started.why_not] if started.why_not else [])]
    if arguments.output == "table":
        sys.stdout.write("\n".join(_lines(job, newest, started, outputs, notes, screen_of(sys.stdout, os.environ))) + "\n")
    else:
        sys.stdout.write(as_text(_document(job, newest, started, outputs, notes), arguments.output))
    return 0


def _before(old: SpecFile, given: Sequence[Path], folders: tuple[Path, ...]) -> Code:
    from penstock.scripts.preview.previewing import Code

    # Beside a spec its app is found first.
    path = given[0] / old.path.name if given else old.path
    return Code("before", old.model_copy(update={"path": path}), (*given, *folders))


def _newest(job: DeployedJob) -> Generation:
    newest = job.records.folder.current()
    if newest is None:
        need, fix = "a job that a driver has run", "try the code in a local run: penstock up"
        raise NotPreviewed(path=f"job {job.name}", given="no generation", need=need, fix=fix)
    return newest


def _recorded(job: DeployedJob, newest: Generation) -> SpecFile:
    """The spec of the generation that runs."""
    recorded = job.records.folder.recorded_spec(newest.number)
    if recorded is None:
        need, fix = f"the spec of generation {newest.number}, which its driver records", "deploy the job as it is with this release first"
        raise NotPreviewed(path=f"job {job.name}", given="none recorded", need=need, fix=fix)
    document = parse_text(recorded.text, f"generation {newest.number} of {job.name}")
    return SpecFile(path=job.spec.path, document=document, job=document.parse(StreamingJob))


def _refuse(arguments: argparse.Namespace, old: SpecFile, new: SpecFile) -> None:
    for spec in (old, new):
        refuse_what_has_no_offsets(spec)
    known = {**old.job.spec.sinks, **new.job.spec.sinks}
    for sink, _ in arguments.key:
        if sink not in known:
            raise WrongUsage(path="--key", given=sink, need=f"a sink of the job: {', '.join(known)}", fix="correct the name")


def _notes(before: Code, newest: Generation) -> Iterator[str]:
    from penstock.jobs.driver.fingerprint import app_hash

    if not newest.fingerprint.app:
        yield f"generation {newest.number} runs an installed app: whether the code of before is that is not known"
    elif app_hash(before.spec, before.app_path) != newest.fingerprint.app:
        yield f"the code of before is not what generation {newest.number} runs: --before names the folder that has it"


def _document(job: DeployedJob, newest: Generation, started: Started, outputs: list[OutputDifference], notes: list[str]) -> dict[str, Any]:
    from penstock.jobs.driver.rewind import instant

    return {
        "schemaVersion": SCHEMA_VERSION,
        "environment": job.environment.name,
        "job": job.name,
        "generation": newest.number,
        "since": instant(started.since_ms),
        "withState": bool(started.queries),
        "queries": {name: {"batch": query.batch, "at": query.at.isoformat()} for name, query in started.queries.items()},
        "outputs": [one.model_dump(by_alias=True, mode="json") for one in outputs],
        "notes": notes,
    }


def _lines(
    job: DeployedJob, newest: Generation, started: Started, outputs: list[OutputDifference], notes: list[str], screen: Screen
) -> Iterator[str]:
    yield f"{job.name} of {job.environment.name}: the code here, compared with generation {newest.number}"
    yield ""
    yield from facts([*_beginnings(started), *(("note", note) for note in notes)], screen)
    yield ""
    rows = [
        (one.output, ", ".join(one.key) or "whole row", *(f"{n:,}" for n in (one.before, one.after, one.added, one.gone, one.changed)))
        for one in outputs
    ]
    yield from table(_COLUMNS, rows, screen)
    for one in outputs:
        if not one.same:
            yield from ("", f"{one.output}, the first rows", *_examples(one))


def _beginnings(started: Started) -> Iterator[tuple[str, str]]:
    from penstock.jobs.driver.rewind import instant

    for name, query in started.queries.items():
        yield f"query {name}" if name else "from", f"micro-batch {query.batch:,} of {query.at:%Y-%m-%d %H:%M:%S} UTC, with its state"
    if not started.queries:
        yield "from", f"{instant(started.since_ms)}, without state"
    yield "to", "the last committed micro-batch; windows and timers that are open then are closed as if the input ended"


def _examples(one: OutputDifference) -> Iterator[str]:
    from penstock.jobs.document import shown

    for row in one.added_rows:
        yield f"  added    {shown(row)}"
    for row in one.gone_rows:
        yield f"  gone     {shown(row)}"
    for changed in one.changed_rows:
        yield f"  changed  {shown(changed.before)}"
        yield f"        to {shown(changed.after)}"


def _key(text: str) -> tuple[str, tuple[str, ...]]:
    sink, _, columns = text.partition("=")
    names = tuple(filter(None, columns.split(",")))
    if not sink or not names:
        raise argparse.ArgumentTypeError(f"a sink and columns as totals=user,day, not {text}")
    return sink, names


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"an integer of at least 0, not {text}")
    return int(text)
