"""``penstock feed SPEC --rate N``: writes generated events to the topics of a job's sources at a steady rate, until Ctrl-C."""

from __future__ import annotations

import argparse
import math
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.infra.job_specs import spec_in
from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.spec import load
from penstock.scripts.cli.brokers_arguments import access_with_or_without, add_brokers_arguments
from penstock.scripts.cli.environment_argument import add_environment_option, chosen_or_none
from penstock.scripts.feeding.errors import TopicMissing
from penstock.scripts.feeding.feeder import Feeder, Topic
from penstock.scripts.feeding.feeds import feeds
from penstock.scripts.installation import app_packages
from penstock.scripts.planning.app_path import add_app_path_argument, folders_of_apps
from penstock.scripts.progress import Steps
from penstock.scripts.topics.brokers import TopicBrokers
from penstock.scripts.topics.difference import ExistingTopic
from penstock.sizing.errors import PenstockError, raise_all

_MOST = 1_000_000.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument("spec", type=Path, metavar="SPEC", help="job spec (YAML) whose topics are fed")
    parser.add_argument("--rate", type=_rate, required=True, metavar="N", help="records per second, of all topics together")
    parser.add_argument("--seconds", type=_seconds, metavar="S", help="how long to feed (default: until Ctrl-C)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the values that are made from schemas (default: 0)")
    add_environment_option(parser, None, more="whose brokers are written to", default_text="PENSTOCK_ENVIRONMENT; none with --brokers")
    add_brokers_arguments(parser)
    add_app_path_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Feeds the topics.

    Returns:
        0, also after Ctrl-C.

    Raises:
        PenstockError: FEED-001 to FEED-003, TOP-002, TOP-004, TOP-005, TOP-008, USE-001, JOB-052, JOB-111, and what is wrong with the spec,
            its app or its input.
    """
    environment, steps = chosen_or_none(arguments), Steps()
    access = access_with_or_without(environment, arguments)
    spec = load(arguments.spec) if environment is None else spec_in(environment, arguments.spec)
    app_path = [
        folder.resolve() for folder in (arguments.app_path if environment is None else folders_of_apps(arguments.app_path, environment))
    ]
    packages = app_packages.install(app_packages.checked(spec), steps)
    sys.path.extend(str(folder) for folder in packages.path if str(folder) not in sys.path)
    brokers = TopicBrokers(access)
    existing = brokers.existing(topic for source in spec.job.spec.kafka_sources.values() for topic in source.named)
    _refuse_missing([topic for source in spec.job.spec.kafka_sources.values() for topic in source.named], existing, access, arguments)
    found = feeds(spec, app_path, packages, arguments.seed, brokers.matching, steps)
    existing |= brokers.existing(name for name in found if name not in existing)
    topics = [Topic(name, existing[name].partitions, records(existing[name].partitions)) for name, records in found.items()]
    _feed(access, topics, arguments, steps)
    return 0


def _feed(access: KafkaAccess, topics: list[Topic], arguments: argparse.Namespace, steps: Steps) -> None:
    names = ", ".join(topic.name for topic in topics)
    until = "until Ctrl-C" if arguments.seconds is None else f"for {arguments.seconds:g} s"
    records = None if arguments.seconds is None else max(1, round(arguments.rate * arguments.seconds))
    with steps.at("feed", f"{arguments.rate:g} records/s to {names} on {access.address}, {until}") as step:
        feeder = Feeder(access, topics, arguments.rate, lambda number: step.watch(f"{number:,} records to {names}"))
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: feeder.stop())
        began_s = time.monotonic()
        try:
            feeder.run(records)
        except PenstockError:
            steps.line("feed", _said(feeder.written, time.monotonic() - began_s))
            raise
        step.said = _said(feeder.written, time.monotonic() - began_s)


def _said(written: Mapping[str, int], took_s: float) -> str:
    total = sum(written.values())
    each = ", ".join(f"{topic} {count:,}" for topic, count in written.items())
    return f"{total:,} records written, {total / max(took_s, 0.001):,.1f} a second: {each}"


def _refuse_missing(
    named: Sequence[str], existing: Mapping[str, ExistingTopic], access: KafkaAccess, arguments: argparse.Namespace
) -> None:
    of = f" {arguments.environment}" if arguments.environment else " ENV"
    raise_all(
        TopicMissing(path=f"topic {topic}", need=f"a topic on {access.address}", fix=f"penstock topics apply{of} --spec {arguments.spec}")
        for topic in dict.fromkeys(named)
        if topic not in existing
    )


def _rate(text: str) -> float:
    return _number(text, "a number of records per second above 0", _MOST)


def _seconds(text: str) -> float:
    return _number(text, "a number of seconds above 0", math.inf)


def _number(text: str, what: str, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and 0 < value <= most):
        limit = "" if math.isinf(most) else f" and at most {most:,.0f}"
        raise argparse.ArgumentTypeError(f"{what}{limit}, not {text}")
    return value
