"""``penstock topics plan|apply``: the topics of an environment's jobs, shown first, then created and grown."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from penstock.infra.environment import Environment
from penstock.infra.parts.jobs import EnvironmentJob
from penstock.infra.plans import plans
from penstock.scripts.cli.brokers_arguments import access_of, add_brokers_arguments, given_brokers_options
from penstock.scripts.cli.command import exit_code
from penstock.scripts.cli.environment_argument import add_environment_argument, chosen
from penstock.scripts.cli.output import add_output_argument, as_text
from penstock.scripts.errors import WrongUsage
from penstock.scripts.planning.app_path import add_app_path_argument
from penstock.scripts.progress import Steps
from penstock.scripts.render.screen import screen_of
from penstock.scripts.topics import table
from penstock.scripts.topics.address import access_of_pods
from penstock.scripts.topics.admin import TopicAdmin
from penstock.scripts.topics.difference import TopicChange, WantedTopic, changes
from penstock.scripts.topics.errors import NotAgreed, TopicRefused
from penstock.scripts.topics.wanted import wanted_topics
from penstock.scripts.topics.way import Reached, Way, by_brokers, by_msk, in_cluster, reaches, refuse_brokers_options
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
    parser.add_argument(
        "--through",
        choices=get_args(Way),
        help="who is asked: MSK's API, or the brokers, from a pod or from here (default: the first of them that serves and is reached)",
    )
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
    planned_jobs = plans(environment)
    wanted = wanted_topics(environment, planned_jobs, arguments.replication)
    with ExitStack() as held:
        reached = _reached(environment, arguments, held, wanted, [job.name for job in planned_jobs.jobs])
        return _run(environment, arguments, wanted, reached)


def _run(environment: Environment, arguments: argparse.Namespace, wanted: Sequence[WantedTopic], reached: Reached) -> int:
    existing = reached.admin.existing(topic.name for topic in wanted)
    planned = changes(wanted, existing, lose_records=arguments.lose_records)
    faults = [*_refused(planned), *reached.admin.refusals(planned)]
    shown = _Shown(planned, reached, f"topics of {environment.name} on {reached.text}", arguments)
    if arguments.action == "apply" and not faults:
        return _apply(shown)
    shown.show(faults)
    if arguments.output == "table":
        raise_all(faults)
    # Already part of the document.
    return exit_code(Faults(faults)) if faults else 0


def _reached(
    environment: Environment, arguments: argparse.Namespace, held: ExitStack, wanted: Sequence[WantedTopic], jobs: Sequence[str]
) -> Reached:
    options = given_brokers_options(arguments)
    refuse_brokers_options(arguments.through, options)
    if arguments.through in (None, "msk-api") and not options:
        found = by_msk(environment, asked=arguments.through is not None)
        if found is not None:
            return found
    if arguments.through == "cluster" or (arguments.through is None and not options and _only_in_cluster(environment)):
        return held.enter_context(in_cluster(environment, wanted, jobs, lose_records=arguments.lose_records))
    return by_brokers(access_of(environment, arguments))


def _only_in_cluster(environment: Environment) -> bool:
    """Whether a pod may reach the brokers, and this machine does not."""
    spec = environment.spec
    return spec.eks is not None and spec.endpoints is None and not reaches(access_of_pods(environment).address)


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


@dataclass(frozen=True)
class _Shown:
    """A plan, and how it is shown.

    Args:
        planned: the changes of all topics.
        reached: whoever makes them.
        headline: of the table.
        arguments: of the command.
    """

    planned: Sequence[TopicChange]
    reached: Reached
    headline: str
    arguments: argparse.Namespace

    def show(self, faults: Sequence[PenstockError] = (), *, applied: bool = False) -> None:
        if self.arguments.output == "table":
            sys.stdout.write(table.render(self.planned, self.headline, screen_of(sys.stdout, os.environ)))
        else:
            topics = {"topics": table.document(self.planned), "applied": applied, "errors": [fault.as_json() for fault in faults]}
            document = {"schemaVersion": SCHEMA_VERSION, "through": self.reached.way, **topics}
            sys.stdout.write(as_text(document, self.arguments.output))
        sys.stdout.flush()


def _apply(shown: _Shown) -> int:
    todo = [change for change in shown.planned if change.actions]
    if shown.arguments.output == "table":
        shown.show()
    if todo:
        _agree(shown.arguments)
        _do(todo, shown.reached.admin)
    if shown.arguments.output != "table":
        shown.show(applied=True)
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


def _do(todo: Sequence[TopicChange], admin: TopicAdmin) -> None:
    """One change at a time: an interruption leaves whole topics, and the next run continues from there."""
    steps = Steps()
    for number, change in enumerate(todo, start=1):
        for action in change.actions:
            with steps.at(f"{number}/{len(todo)}", f"{action} {change.name}") as step:
                admin.do(change, action)
                step.said = f"{action} {change.name}: {admin.said}"
    with steps.at("shown", "wait until all changes are visible") as step:
        admin.settle()
        step.said = "all changes are visible"
