"""The fixtures. pytest imports this module in every run of an environment with the package, so it imports nothing of Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.testing.applied_stacks import AppliedStacks, AwsStacks
    from penstock.testing.job_under_test import JobUnderTest
    from penstock.testing.local_services import LocalServices
    from penstock.testing.plans import AssertPlan


# Otherwise PySpark asks Spark's JVM at each column for the session and its settings, to name its place in errors; ours have it anyway.
SESSION_CONF = {"spark.python.sql.dataFrameDebugging.enabled": "false"}
# The option of pytest that says where stacks are applied.
AWS_OPTION = "--penstock-aws"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option of ``aws_stacks``."""
    parser.getgroup("penstock").addoption(
        AWS_OPTION,
        choices=["moto", "localstack"],
        help="what aws_stacks applies stacks to: moto, or LocalStack with moto for the services that its free edition has not "
        "(default: localstack if LOCALSTACK_ENDPOINT is set, else moto)",
    )


class MicroBatches(Protocol):
    """The type of the fixture ``micro_batches``."""

    def __call__(self, spec: str | Path, *, app_path: Sequence[str | Path] = (), partitions: int = 1) -> JobUnderTest:
        """A job that has not read anything yet.

        Args:
            spec: path of its spec, from pytest's root folder.
            app_path: folders of its app, besides that of the spec and pytest's root folder.
            partitions: of each topic that it reads.

        Raises:
            PenstockError: what is wrong in the spec.
        """


@pytest.fixture(scope="session")
def penstock_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark, started once for all tests. A ``conftest.py`` with a session of its own has a fixture of this name."""
    from penstock.scripts.checking.session import local_session

    with local_session("penstock-testing", "local[2]", tmp_path_factory.mktemp("spark"), more=SESSION_CONF) as session:
        session.sparkContext.setLogLevel("ERROR")
        yield session


@pytest.fixture
def micro_batches(penstock_session: SparkSession, tmp_path: Path, pytestconfig: pytest.Config) -> Iterator[MicroBatches]:
    """Jobs that read hand-made micro-batches, without Kafka and S3."""
    from penstock.testing.job_under_test import JobUnderTest

    jobs: list[JobUnderTest] = []

    def job(spec: str | Path, *, app_path: Sequence[str | Path] = (), partitions: int = 1) -> JobUnderTest:
        root = pytestconfig.rootpath
        folders = [root / folder for folder in (*app_path, ".")]
        folder = tmp_path / f"penstock-job-{len(jobs)}"
        jobs.append(JobUnderTest(root / spec, penstock_session, folder, app_path=folders, partitions=partitions, held=held))
        return jobs[-1]

    with ExitStack() as held:
        yield job


@pytest.fixture
def assert_plan(pytestconfig: pytest.Config) -> AssertPlan:
    """Holds the plan of a spec against numbers."""
    from penstock.testing.plans import assertion

    return assertion(pytestconfig.rootpath)


@pytest.fixture(scope="session")
def local_environment(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[LocalServices]:
    """The emulated AWS, the broker and the databases of ``penstock up``, by the environment ``local``; started once for all tests."""
    from penstock.infra.environment_file import LOCAL_ENVIRONMENT, load
    from penstock.scripts.local.environment import LocalEnvironment
    from penstock.testing.local_services import LocalServices

    folder = tmp_path_factory.mktemp("penstock-local")
    with LocalEnvironment(load(LOCAL_ENVIRONMENT), folder=folder, aws_port=0, kafka_port=0) as environment:
        environment.wait_for_buckets()
        yield LocalServices(environment, folder / "connections", pytestconfig.rootpath)


@pytest.fixture(scope="session")
def penstock_aws(pytestconfig: pytest.Config) -> str:
    """Where ``aws_stacks`` applies stacks: ``moto`` or ``localstack``."""
    from penstock.testing.applied_stacks import emulator

    return emulator(pytestconfig.getoption(AWS_OPTION, default=None))


@pytest.fixture(scope="session")
def aws_stacks(penstock_aws: str, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[AwsStacks]:
    """The AWS stacks of environments, applied to emulators, planned again without changes, and destroyed at the end of all tests."""
    from penstock.infra.environment_file import LOCAL_ENVIRONMENT, load
    from penstock.testing.applied_stacks import LOCALSTACK, applied

    done: dict[str, AppliedStacks] = {}
    with ExitStack() as held:

        def stacks(environment: str = LOCAL_ENVIRONMENT, *, app_path: Sequence[str | Path] = ()) -> AppliedStacks:
            if environment not in done:
                folder, folders = tmp_path_factory.mktemp("penstock-stacks"), [pytestconfig.rootpath / one for one in app_path]
                show, localstack = _progress(pytestconfig), penstock_aws == LOCALSTACK
                made = applied(load(environment), folder, localstack=localstack, app_path=folders, progress=show)
                done[environment] = held.enter_context(made)
            return done[environment]

        yield stacks


def _progress(config: pytest.Config) -> Callable[[str], None]:
    """Shows a line of something that takes minutes, in the process that has the terminal."""
    plugins, one_at_a_time = config.pluginmanager, Lock()
    reporter, capture = plugins.get_plugin("terminalreporter"), plugins.get_plugin("capturemanager")

    def show(line: str) -> None:
        if reporter is None:
            return
        # Meanwhile pytest keeps all output for the report of the test.
        with one_at_a_time, capture.global_and_fixture_disabled() if capture else nullcontext():
            reporter.ensure_newline()
            reporter.write_line(f"  {line}")
            reporter.flush()

    return show
