"""docs/tutorials: each page's files are run in a repository as `penstock init` makes it.

The plain job that is taken over runs too, on a real broker. There is no Flink here: rows of its jobs are those that the pages expect.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.jobs.driver.check import check
from penstock.jobs.local.recording import Record
from penstock.jobs.spec import load
from penstock.scripts.local import kafka_topics, recorded_run
from penstock.testing import JobUnderTest, same_rows
from penstock.testing import Record as HandMade
from penstock.testing.local_checkpoint import FILE_MANAGER
from tests.docs import tutorials
from tests.jobs.spark.running import Surroundings


@pytest.fixture(params=tutorials.JOBS)
def page(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def repository(page: str, tmp_path: Path) -> Iterator[Path]:
    """A new repository with the page's files."""
    yield tutorials.repository(page, tmp_path)
    # The next one has a package of the same name.
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
        del sys.modules[name]


class _Lent:
    """A plugin of pytest: the tier's session in the place of the kit's, which takes seconds to start."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    @pytest.fixture(scope="session")
    def penstock_session(self) -> SparkSession:
        return self._session


@pytest.mark.chaos
def test_the_tests_of_a_page_pass_in_a_new_repository(
    page: str, repository: Path, session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    # The kit is a plugin already where it is installed, and it must come before the session.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    plugins = [importlib.import_module("penstock.testing.plugin"), _Lent(session)]
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--import-mode=importlib", "--rootdir", str(repository)]
    assert pytest.main([*options, f"tests/test_{tutorials.JOBS[page]}.py"], plugins) is pytest.ExitCode.OK


def test_the_app_of_a_page_passes_its_check(page: str, repository: Path, session: SparkSession, tmp_path: Path) -> None:
    check(load(repository / f"specs/{tutorials.JOBS[page]}.yaml"), (repository,), session, tmp_path)


@pytest.mark.parametrize("page", ["from-pyspark"], indirect=True)
class TestThePlainJob:
    """The old job of the page on PySpark writes what the new one does, but for what the page says."""

    def test_it_writes_the_same_rows(self, repository: Path, old: OldJob, shown: SimpleNamespace, tmp_path: Path) -> None:
        with old.running():
            for batch in shown.ORDERS:
                old.read(batch)
        same_rows(old.rows(), shown.EXPECTED)
        files = [json.loads(line) for file in tmp_path.glob("files/country=DE/*.json") for line in file.read_text().splitlines()]
        assert [(row["orders"], row["revenue"]) for row in files] == [(2, 1520.0)]

    @pytest.mark.chaos
    def test_it_loses_the_rows_of_a_partition_that_lags(self, old: OldJob, shown: SimpleNamespace) -> None:
        with old.running():
            for batch in shown.LAGGING:
                old.read(batch)
        same_rows(old.rows(), [shown.row("DE", "12:00:00", 2, 40.0), shown.row("DE", "12:20:00", 1, 20.0)])

    def test_the_new_one_takes_over_without_loss_and_twice_written_windows(
        self, repository: Path, old: OldJob, shown: SimpleNamespace, session: SparkSession, tmp_path: Path
    ) -> None:
        script = _module(repository / "where_it_stopped.py")
        first, *rest = shown.ORDERS
        with old.running():
            for batch in (first, *rest[:2]):
                old.read(batch)
        watermark, offsets = script.where_it_stopped(tmp_path / "checkpoint")
        assert (watermark.isoformat(), offsets) == ("2025-11-04T12:06:30+00:00", [f"{old.topic},0,7", f"{old.topic},1,0"])
        spec = repository / "specs/revenue.yaml"
        spec.write_text(spec.read_text(encoding="utf-8").replace("2025-11-04T00:00:00Z", "2025-11-04T12:05:00Z"), encoding="utf-8")
        new = JobUnderTest(spec, session, tmp_path / "new", app_path=[repository], held=ExitStack())
        written = new.run(*shown.ORDERS)["revenue"]
        assert old.rows()
        assert written
        same_rows([*old.rows(), *written], shown.EXPECTED)


class OldJob:
    """The plain job of the page, on a broker and with topics of its own.

    Args:
        module: the page's file.
        around: broker and session.
        topic: that it reads.
        folder: for its files and its checkpoint.
    """

    def __init__(self, module: ModuleType, around: Surroundings, topic: str, folder: Path) -> None:
        self.topic = topic
        self._module, self._around, self._folder = module, around, folder
        self._query: Any = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Context in which it runs."""
        folders = (str(self._folder / "files"), str(self._folder / "checkpoint"))
        session = self._around.session.newSession()
        # The tier's is for checkpoints on S3.
        session.conf.set("spark.sql.streaming.checkpointFileManagerClass", FILE_MANAGER)
        self._query = self._module.start(session, self._around.brokers, *folders)
        try:
            yield
        finally:
            self._query.stop()

    def read(self, values: Sequence[Any]) -> None:
        """Has it read one micro-batch, and what follows from that."""
        records = [value if isinstance(value, HandMade) else HandMade(value) for value in values]
        by_partition = [Record(self._text(one.value), partition=one.partition) for one in records]
        kafka_topics.feed(self._around.brokers, self.topic, 2, by_partition, lambda count: None)
        self._query.processAllAvailable()

    def rows(self) -> list[dict[str, Any]]:
        """What is in its topic."""
        return list(recorded_run.topic_rows(self._around.brokers, f"{self.topic}-revenue"))

    @staticmethod
    def _text(value: Any) -> bytes:
        return (value if isinstance(value, str) else json.dumps(value)).encode()


@pytest.fixture
def old(repository: Path, surroundings: Surroundings, tmp_path: Path) -> OldJob:
    """The page's plain job with other topics, and without waiting for its trigger."""
    topic, file = f"t{uuid.uuid4().hex[:8]}", repository / "revenue_job.py"
    text = file.read_text(encoding="utf-8")
    for before, after in (('"subscribe", "orders"', f'"subscribe", "{topic}"'), ('"topic", "revenue"', f'"topic", "{topic}-revenue"')):
        assert text.count(before) == 1
        text = text.replace(before, after)
    file.write_text(text.replace("10 seconds", "0 seconds"), encoding="utf-8")
    kafka_topics.create(surroundings.brokers, {topic: 2, f"{topic}-revenue": 1})
    return OldJob(_module(file), surroundings, topic, tmp_path)


@pytest.fixture
def shown(repository: Path) -> SimpleNamespace:
    """The names of the page's test."""
    return SimpleNamespace(**vars(_module(repository / "tests/test_revenue.py")))


def _module(file: Path) -> ModuleType:
    found = importlib.util.spec_from_file_location(f"tutorial_{file.stem}", file)
    assert found
    assert found.loader
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module
