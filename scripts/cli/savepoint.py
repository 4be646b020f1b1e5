"""``penstock savepoint``: takes savepoints of a job, lists, shows and deletes them, and has a job start from one."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from penstock.infra.environment_file import argument_of
from penstock.jobs.savepoints.errors import SavepointMissing
from penstock.jobs.savepoints.folder import SavepointFolder, Savepoints
from penstock.jobs.savepoints.manifest import NAME_PATTERN, Savepoint
from penstock.jobs.storage.continuation import SavepointStart
from penstock.scripts.cli.brokers_arguments import access_of, add_brokers_arguments
from penstock.scripts.cli.environment_argument import add_environment_argument, chosen
from penstock.scripts.cli.output import add_output_argument, as_text
from penstock.scripts.operations.deployed_job import DeployedJob, add_job_argument
from penstock.scripts.planning.app_path import add_app_path_argument
from penstock.scripts.process.interrupts import end_in_order
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning.confirmation import confirm
from penstock.scripts.provisioning.errors import SavepointInUse
from penstock.scripts.render.screen import Screen, screen_of
from penstock.scripts.savepoints.listing import listed, savepoint_lines, savepoints_table
from penstock.scripts.savepoints.offsets_argument import add_offsets_arguments
from penstock.sizing.planned import SCHEMA_VERSION


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    kind = _in_any_order(type(parser))
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=kind)

    def action(name: str, text: str) -> argparse.ArgumentParser:
        added: argparse.ArgumentParser = actions.add_parser(name, help=text, allow_abbrev=False)
        add_environment_argument(added)
        add_job_argument(added)
        return added

    create = action("create", "take a savepoint of a job that runs or is stopped, as of its last committed micro-batch")
    create.add_argument("--name", type=_name, help="of the savepoint (default: the time in UTC)")
    add_output_argument(action("list", "list the savepoints of a job, also incomplete ones"))
    show = action("show", "show what a savepoint has, and whether all of it is there")
    show.add_argument("--verify", action="store_true", help="compare the checksum of each object, too")
    add_output_argument(show)
    delete = action("delete", "delete a savepoint, or what an interrupted command has left of one")
    start = action("start-from", "have a job start from a savepoint, after showing what that means")
    start.add_argument("--fork", action="store_true", help="the savepoint may be another job's")
    allowed = "the savepoint may have queries that the app does not have, whose state is then lost"
    start.add_argument("--allow-non-restored-state", action="store_true", help=allowed)
    add_offsets_arguments(start)
    add_brokers_arguments(start)
    start.add_argument("--plan-only", action="store_true", help="show what is written again, and exit")
    add_app_path_argument(start)
    for one in (delete, start):
        one.add_argument("--yes", action="store_true", help="skip the confirmation prompt")
    for one in (show, delete):
        one.add_argument("savepoint", type=_any_name, metavar="NAME", help="of the savepoint")
    start.add_argument(
        "savepoint", type=_name_or_uri, metavar="NAME|URI", help="a savepoint of the job, or s3a://BUCKET/JOB/savepoints/NAME of any"
    )


def _in_any_order(kind: type[argparse.ArgumentParser]) -> Any:
    """A parser that takes options also between its two arguments, as in ``ENV --job JOB NAME``."""

    class InAnyOrder(kind):  # type: ignore[valid-type, misc]
        _within = False

        def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
            if self._within:
                return super().parse_known_args(args, namespace)
            self._within = True
            return self.parse_known_intermixed_args(args, namespace)

    return InAnyOrder


def run(arguments: argparse.Namespace) -> int:
    """Does what the action says.

    Returns:
        0.

    Raises:
        PenstockError: DEP-030 to DEP-033, DEP-053, JOB-008, JOB-009, JOB-086, JOB-095 to JOB-098, JOB-101, and those of a rewind.
    """
    end_in_order()
    actions = {"create": _create, "list": _list, "show": _show, "delete": _delete, "start-from": _start_from}
    actions[arguments.action](DeployedJob(chosen(arguments), arguments.job), arguments)
    return 0


def _create(job: DeployedJob, arguments: argparse.Namespace) -> None:
    from penstock.jobs.savepoints.taking import Taken, take

    checkpoint, generation = job.checkpoint()
    folder = job.savepoints.of(arguments.name or f"{datetime.now(UTC):%Y-%m-%dt%H-%M-%Sz}")
    of = Taken(job=job.name, environment=job.environment.name, by=job.caller, generation=generation)
    with Steps().at("savepoint", f"copying {checkpoint.uri}") as step:
        saved = take(checkpoint, folder, of, job.s3, step.watch)
        step.said = f"{folder.name} is complete"
    _print(savepoint_lines(saved, folder.uri, _screen()))


def _list(job: DeployedJob, arguments: argparse.Namespace) -> None:
    found = listed(job.savepoints)
    if arguments.output != "table":
        _document(job, {"job": job.name, "savepoints": [one.as_json() for one in found]}, arguments.output)
    elif not found:
        _print([f"{job.name} of {job.environment.name} has no savepoints"])
    else:
        _print([f"savepoints of {job.name} of {job.environment.name}", "", *savepoints_table(found, _screen())])


def _show(job: DeployedJob, arguments: argparse.Namespace) -> None:
    folder = job.savepoints.of(arguments.savepoint)
    saved = folder.manifest()
    _verify(folder, saved, job, checksums=arguments.verify)
    if arguments.output == "table":
        verified = "with their checksums" if arguments.verify else "with their sizes"
        _print([*savepoint_lines(saved, folder.uri, _screen()), "", f"all objects are there, {verified}"])
    else:
        _document(job, {"folder": folder.uri, **saved.model_dump(by_alias=True, mode="json")}, arguments.output)


def _verify(folder: SavepointFolder, saved: Savepoint, job: DeployedJob, *, checksums: bool) -> None:
    from penstock.jobs.savepoints.copying import Copier, each

    folder.verify(saved)
    if not checksums:
        return
    copier = Copier(job.s3, folder.data(saved).uri, "")
    with Steps().at("verify", "comparing checksums") as step:
        found = each(copier.checksum, [one.name for one in saved.objects], lambda done: step.watch(f"{done:,} objects"))
        step.said = f"{len(found):,} objects compared"
    for one in saved.objects:
        if found[one.name] != one.sha256:
            given = f"SHA-256 {found[one.name]}" if found[one.name] else "none"
            raise folder.damaged(saved, one.name, given, f"SHA-256 {one.sha256}")


def _delete(job: DeployedJob, arguments: argparse.Namespace) -> None:
    folder = job.savepoints.of(arguments.savepoint)
    amount = len(folder.listed())
    if not amount:
        raise SavepointMissing(path=folder.uri, given="nothing", need="a savepoint", fix=f"one of: {_names(job.savepoints)}")
    current = job.records.folder.current()
    pending = job.records.pending(current) if current is not None else None
    if pending is not None and pending.start_from == folder.uri:
        fix = f"penstock rewind {argument_of(job.environment)} --job {job.name} --undo withdraws the request"
        raise SavepointInUse(path=folder.uri, given=f"requested at {pending.asked:%Y-%m-%d %H:%M:%S} UTC", fix=fix)
    if not arguments.yes:
        confirm(f"Delete savepoint {folder.name} of {job.name} of {job.environment.name}, {amount:,} objects?", "yes")
    with Steps().at("delete", f"deleting {folder.uri}") as step:
        step.said = f"{folder.delete_attempts():,} objects deleted"


def _start_from(job: DeployedJob, arguments: argparse.Namespace) -> None:
    from penstock.jobs.savepoints.starting import refuse_another_job
    from penstock.scripts.savepoints.importing import own_copy
    from penstock.scripts.savepoints.reading_on import reading_on
    from penstock.scripts.savepoints.starting_over import StartingOver, newest_of

    source = _source(job, arguments.savepoint)
    saved = source.manifest()
    refuse_another_job(saved, source.uri, job.name, SavepointStart(source.uri, of_another_job=arguments.fork))
    source.verify(saved)
    allowed, offsets = arguments.allow_non_restored_state, arguments.offsets
    newest = newest_of(job, source.uri, allow_non_restored_state=allowed, offsets=offsets)
    over = StartingOver(job, newest, Steps())
    if not arguments.plan_only and over.gone_on_with(own_copy(saved, source, job.savepoints), saved.queries, offsets):
        return
    of = f"{saved.checkpoint} of {saved.whose}, at {saved.made:%Y-%m-%d %H:%M:%S} UTC"
    read_on = None if offsets is None else reading_on(offsets, source, saved, job.spec, lambda: access_of(job.environment, arguments))
    state = over.repartitioned(source.uri, {name: source.state(saved, name) for name in saved.queries})
    _print(over.shown(f"starts from savepoint {saved.name} of {saved.job}", saved.queries, _screen(), state, of, read_on))
    if arguments.plan_only:
        return
    if not arguments.yes:
        confirm(f"Start {job.name} of {job.environment.name} from this savepoint?", "yes")
    own = _imported(job, saved, source)
    over.start_from(own, fork=arguments.fork, allow_non_restored_state=allowed, offsets=offsets)


def _imported(job: DeployedJob, saved: Savepoint, source: SavepointFolder) -> SavepointFolder:
    from penstock.scripts.savepoints.importing import imported, own_copy

    if own_copy(saved, source, job.savepoints) is source:
        return source
    with job.cluster(), Steps().at("import", f"copying {source.uri}") as step:
        own = imported(saved, source, job.savepoints, job.s3, step)
        step.said = f"{own.name} is a savepoint of {job.name}"
    return own


def _source(job: DeployedJob, given: str) -> SavepointFolder:
    if "://" in given:
        return SavepointFolder(given.rstrip("/"), job.s3)
    return job.savepoints.of(given)


def _names(savepoints: Savepoints) -> str:
    return ", ".join(savepoints.names()) or "the job has none"


def _name(text: str) -> str:
    if not Savepoints.valid(text):
        raise argparse.ArgumentTypeError(f"{NAME_PATTERN}, not {text}")
    return text


def _any_name(text: str) -> str:
    """Of a savepoint that exists: a copy of another job's may have a longer one. Never a part of it, or the folder of all."""
    if re.fullmatch(r"[a-z0-9][a-z0-9-]*", text) is None:
        raise argparse.ArgumentTypeError(f"the name of a savepoint, not {text!r}")
    return text


def _name_or_uri(text: str) -> str:
    return text if "://" in text else _any_name(text)


def _document(job: DeployedJob, content: dict[str, Any], output: str) -> None:
    sys.stdout.write(as_text({"schemaVersion": SCHEMA_VERSION, "environment": job.environment.name, **content}, output))


def _screen() -> Screen:
    return screen_of(sys.stdout, os.environ)


def _print(lines: Iterable[str] | Sequence[str]) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
