"""``penstock topics plan|apply``: the topics of an environment's jobs, shown first, then created and grown."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from penstock.infra.environment import Environment
from penstock.infra.parts.jobs import EnvironmentJob
from penstock.infra.plans import plans
from penstock.scripts.cli.brokers_arguments import access_of, add_brokers_arguments
from penstock.scripts.cli.command import exit_code
from penstock.scripts.cli.environment_argument import add_environment_argument, chosen
from penstock.scripts.cli.output import add_output_argument, as_text
from penstock.scripts.errors import WrongUsage
from penstock.scripts.planning.app_path import add_app_path_argument
from penstock.scripts.progress import Steps
from penstock.scripts.render.screen import screen_of
from penstock.scripts.topics import table
from penstock.scripts.topics.brokers import TopicBrokers
from penstock.scripts.topics.difference import TopicChange, changes
from penstock.scripts.topics.errors import NotAgreed, TopicRefused
from penstock.scripts.topics.wanted import wanted_topics
from penstock.sizing.errors import Faults, PenstockError, raise_all
from penstock.sizing.planned import SCHEMA_VERSION

_YES = ("y", "yes")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    verbs = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    plan = verbs.add_parser("plan", help="show the plan without changing anything", allow_abbrev=False)
    apply = verbs.add_parser("apply", help="show the plan, ask for confirmation, and apply it", allow_abbrev=False)
    for one in (plan, apply):
        _add_common(one)
    apply.add_argument("--yes", action="store_true", help="skip the confirmation prompt")


def _add_common(parser: argparse.ArgumentParser) -> None:
    add_environment_argument(parser)
    add_app_path_argument(parser)
    parser.add_argument("--spec", action="append", type=Path, default=[], metavar="FILE", help="additional job spec; repeatable")
    add_brokers_arguments(parser)
    parser.add_argument("--lose-records", action="store_true", help="allow changes that delete records, such as a shorter retention")
    parser.add_argument(
        "--replication", type=_copies, metavar="N", help="replication factor for topics without one in a spec (default: the environment's)"
    )
    add_output_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Shows the plan, and with ``apply`` applies it.

    Returns:
        0, or 1 if a change is refused or was not confirmed.
    """
    environment = _environment(arguments)
    wanted = wanted_topics(environment, plans(environment), arguments.replication)
    reached = access_of(environment, arguments)
    brokers = TopicBrokers(reached)
    existing = brokers.existing(topic.name for topic in wanted)
    planned = changes(wanted, existing, lose_records=arguments.lose_records)
    faults = [*_refused(planned), *brokers.refusals(planned)]
    headline = f"topics of {environment.name} on {reached.address}"
    if arguments.action == "apply" and not faults:
        return _apply(planned, brokers, headline, arguments)
    _show(planned, headline, arguments, faults)
    if arguments.output == "table":
        raise_all(faults)
    # Already part of the document.
    return exit_code(Faults(faults)) if faults else 0


def _copies(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 15:
        raise argparse.ArgumentTypeError(f"a number of replicas from 1 to 15, not {text}")
    return int(text)


def _environment(arguments: argparse.Namespace) -> Environment:
    environment = chosen(arguments)
    listed = environment.spec.jobs
    known = {job.spec for job in listed}
    others = dict.fromkeys(str(path.resolve()) for path in arguments.spec)
    return environment.with_spec(jobs=[*listed, *(EnvironmentJob(spec=path) for path in others if path not in known)])


def _refused(planned: Sequence[TopicChange]) -> Iterator[PenstockError]:
    for name, (given, need, fix) in table.refusals(planned):
        yield TopicRefused(path=f"topic {name}", given=given, need=need, fix=fix)


def _show(
    planned: Sequence[TopicChange],
    headline: str,
    arguments: argparse.Namespace,
    faults: Sequence[PenstockError] = (),
    *,
    applied: bool = False,
) -> None:
    if arguments.output == "table":
        sys.stdout.write(table.render(planned, headline, screen_of(sys.stdout, os.environ)))
    else:
        topics = {"topics": table.document(planned), "applied": applied, "errors": [fault.as_json() for fault in faults]}
        sys.stdout.write(as_text({"schemaVersion": SCHEMA_VERSION, **topics}, arguments.output))
    sys.stdout.flush()


def _apply(planned: Sequence[TopicChange], brokers: TopicBrokers, headline: str, arguments: argparse.Namespace) -> int:
    todo = [change for change in planned if change.actions]
    if arguments.output == "table":
        _show(planned, headline, arguments)
    if todo:
        _agree(arguments)
        _do(todo, brokers)
    if arguments.output != "table":
        _show(planned, headline, arguments, applied=True)
    return 0


def _agree(arguments: argparse.Namespace) -> None:
    if arguments.yes:
        return
    if arguments.output != "table" or not sys.stdin.isatty():
        need = "--yes if stdin is not a terminal"
        raise WrongUsage(given="penstock topics apply", need=need, fix="review the output of penstock topics plan, then apply with --yes")
    answer = input("Apply these changes? [y/N]: ")
    if answer.strip().lower() not in _YES:
        raise NotAgreed(path="topics", given=answer, need="yes", fix="run it again to confirm")


def _do(todo: Sequence[TopicChange], brokers: TopicBrokers) -> None:
    """One change at a time: an interruption leaves whole topics, and the next run continues from there."""
    steps = Steps()
    for number, change in enumerate(todo, start=1):
        for action in change.actions:
            with steps.at(f"{number}/{len(todo)}", f"{action} {change.name}") as step:
                brokers.do(change, action)
                step.said = f"{action} {change.name}: done"
