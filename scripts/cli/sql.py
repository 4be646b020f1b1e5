"""``penstock sql SPEC|ENV QUERY``: rows of a query over the topics that jobs read, as they come."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import yaml

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load as load_environment
from penstock.infra.environment_file import names
from penstock.infra.job_specs import spec_in
from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.spec import SpecFile, load
from penstock.jobs.spec.times import TIME_NEEDED, epoch_ms
from penstock.scripts.cli.brokers_arguments import access_with_or_without, add_brokers_arguments
from penstock.scripts.cli.environment_argument import add_environment_option, chosen_or_none
from penstock.scripts.cli.output import add_output_argument
from penstock.scripts.errors import WrongUsage
from penstock.scripts.installation import app_packages
from penstock.scripts.planning.app_path import add_app_path_argument, folders_of_apps
from penstock.scripts.process import interrupts
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.render.screen import screen_of
from penstock.scripts.render.table import Column, table
from penstock.scripts.topics.brokers import TopicBrokers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.scripts.querying.tables import ReadJob, TopicTable


_NAMES: tuple[Literal["earliest"], Literal["latest"]] = ("earliest", "latest")
# Where reading starts: a name, or epoch milliseconds.
StartAt = Literal["earliest", "latest"] | int


class _Subject(NamedTuple):
    """Whose topics are read."""

    environment: Environment | None
    specs: list[SpecFile]
    app_path: list[Path]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument(
        "subject", metavar="SPEC|ENV", help="job spec, or environment whose jobs are meant: the topics that they read are tables"
    )
    parser.add_argument("query", nargs="?", metavar="QUERY", help="query in Spark SQL (default: list the tables and their columns)")
    parser.add_argument("--follow", action="store_true", help="go on with the rows of records that come, until Ctrl-C")
    parser.add_argument("--limit", type=_limit, metavar="N", help="end after N rows")
    parser.add_argument(
        "--from",
        dest="start",
        type=_start,
        metavar="WHEN",
        help="earliest, latest, or a time: where the topics are read from (default: earliest; with --follow latest)",
    )
    add_output_argument(parser, ("table", "json"))
    add_environment_option(parser, None, more="whose brokers are read", default_text="PENSTOCK_ENVIRONMENT; none with --brokers")
    add_brokers_arguments(parser)
    add_app_path_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Shows the rows.

    Returns:
        0, also when following ends at Ctrl-C.

    Raises:
        PenstockError: SQL-001 to SQL-006, TOP-002, TOP-004, TOP-005, TOP-008, USE-001, JOB-052, JOB-111, and what is wrong with the spec,
            the environment or an app.
        KeyboardInterrupt: at Ctrl-C before the rows of what is there have ended.
    """
    start: StartAt = ("latest" if arguments.follow else "earliest") if arguments.start is None else arguments.start
    if start == "latest" and not arguments.follow:
        raise WrongUsage(
            given="--from latest", need="--follow with it: there is nothing after the latest record", fix="--follow, or a time"
        )
    interrupts.end_in_order()
    subject, steps = _subject(arguments), Steps()
    access = access_with_or_without(subject.environment, arguments)
    # Asked before Spark is started, which would wait for brokers for minutes.
    brokers = TopicBrokers(access)
    named = [topic for spec in subject.specs for source in spec.job.spec.kafka_sources.values() for topic in source.named]
    existing = set(brokers.existing(named))
    # PySpark takes long to import.
    from penstock.scripts.querying.tables import ReadJob, tables

    jobs = [ReadJob(spec, subject.app_path, app_packages.install(app_packages.checked(spec), steps)) for spec in subject.specs]
    with _session(subject.environment, access, jobs) as (session, folder):
        with steps.at("sql", "Spark reads the schemas of the topics") as step:
            found = tables(jobs, brokers.matching, session, folder)
            step.said = f"{len(found)} tables on {access.address}"
        missing = {name for name, one in found.items() if name not in existing and one.kafka.pattern is None}
        if arguments.query is None:
            _list(found, missing)
        else:
            _query(session, access, {name: one for name, one in found.items() if name not in missing}, start, arguments)
    return 0


def _query(
    session: SparkSession, access: KafkaAccess, found: Mapping[str, TopicTable], start: StartAt, arguments: argparse.Namespace
) -> None:
    from penstock.scripts.querying import query
    from penstock.scripts.querying.rows import RowLines
    from penstock.scripts.querying.tables import Start, opened

    for name, one in found.items():
        opened(one, access, session, Start(start), follow=arguments.follow).createOrReplaceTempView(query.quoted(name))
    frame: DataFrame = query.analyzed(session, arguments.query, list(found))
    lines = RowLines(frame.columns, sys.stdout, as_json=arguments.output == "json")
    if not (arguments.follow and frame.isStreaming):
        query.collected(frame, arguments.limit, lines.write)
        return
    try:
        query.followed(frame, arguments.limit, lines.write)
    except KeyboardInterrupt:
        interrupts.taken()


def _list(found: Mapping[str, TopicTable], missing: set[str]) -> None:
    from penstock.scripts.querying.query import quoted
    from penstock.scripts.querying.tables import columns_of

    rows = [
        [
            quoted(name),
            f"{one.job}: {one.source}",
            "does not exist" if name in missing else "",
            ", ".join(f"{column} {kind}" for column, kind in columns_of(one).items()),
        ]
        for name, one in found.items()
    ]
    columns = [Column("table"), Column("source"), Column("topic"), Column("columns", wraps=True)]
    sys.stdout.write("\n".join(table(columns, rows, screen_of(sys.stdout, os.environ))) + "\n")


def _subject(arguments: argparse.Namespace) -> _Subject:
    name: str = arguments.subject
    if name in names() or _is_environment(Path(name)):
        if arguments.environment not in (None, name):
            given = f"environments {name} and {arguments.environment}"
            raise WrongUsage(given=given, need="a single environment", fix="specify it once")
        environment = load_environment(name)
        specs = [spec_in(environment, path) for path in environment.spec.job_paths]
        return _Subject(environment, specs, folders_of_apps(arguments.app_path, environment))
    own = None if arguments.brokers is not None and arguments.environment is None else chosen_or_none(arguments)
    spec = load(Path(name)) if own is None else spec_in(own, Path(name))
    return _Subject(own, [spec], arguments.app_path if own is None else folders_of_apps(arguments.app_path, own))


def _is_environment(path: Path) -> bool:
    """Whether a file is an environment, and not a spec; what is wrong in it is found later."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return False
    return isinstance(document, dict) and document.get("kind") == "Environment"


@contextmanager
def _session(environment: Environment | None, access: KafkaAccess, jobs: Sequence[ReadJob]) -> Iterator[tuple[SparkSession, Path]]:
    """A session on this machine, and a folder that goes with it."""
    from penstock.scripts.checking.session import QUERY_LOGGERS, local_session

    for logger in QUERY_LOGGERS:
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    jars = [jar for job in jobs for jar in job.packages.jars]
    variables = AwsAccess(environment).variables if environment is not None and access.security == "iam" else {}
    cores = max(2, os.cpu_count() or 1)
    more = {"spark.sql.shuffle.partitions": str(cores)}
    with (
        tempfile.TemporaryDirectory(prefix="penstock-sql-") as name,
        _with(variables),
        local_session("sql", f"local[{cores}]", Path(name), jars, more) as session,
    ):
        yield session, Path(name)


@contextmanager
def _with(variables: Mapping[str, str]) -> Iterator[None]:
    """Context with environment variables for the JVM, whose Kafka clients sign with AWS credentials."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _limit(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 9 or int(text) == 0:
        raise argparse.ArgumentTypeError(f"a number of rows from 1 on, not {text}")
    return int(text)


def _start(text: str) -> StartAt:
    for name in _NAMES:
        if text == name:
            return name
    try:
        return epoch_ms(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"earliest, latest, or {TIME_NEEDED}, not {text}") from None
