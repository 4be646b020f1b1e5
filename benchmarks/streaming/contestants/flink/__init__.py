"""PyFlink SQL, in a Python environment of its own and with the connector's jar, both from locks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.streaming.contestants.place import HEAP, SLOTS, Place
from benchmarks.streaming.workload import Backend
from penstock.scripts.installation import setting_up
from penstock.scripts.installation.cache import Cache
from penstock.scripts.installation.jars import Jars
from penstock.scripts.installation.tool_environment import ToolEnvironment
from penstock.scripts.process.supervised import SupervisedProcess
from penstock.scripts.progress import Steps

_FOLDER = Path(__file__).parent
# A failed statement is a trace in Java within one in Python.
_LOG_LINES = 400
# The first is Flink's default.
_BACKENDS: Mapping[Backend | None, str] = {None: "hashmap", "memory": "hashmap", "rocksdb": "rocksdb"}
_JARS = Jars("flink", title="Flink's Kafka connector", download_mb=11, data=_FOLDER)


class RunningFlink:
    """A local cluster with its job.

    Args:
        process: the process.
    """

    def __init__(self, process: SupervisedProcess) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """Of the Python that the JVM descends from."""
        return self._process.pid

    @property
    def failure(self) -> Exception | None:
        """Why it has ended, if it has."""
        return None if self._process.alive() else RuntimeError(self._process.tail(_LOG_LINES))


def prepare(steps: Steps) -> None:
    """Installs PyFlink and its connector where they are missing.

    Raises:
        PenstockError: TOOL-011, TOOL-012, TOOL-024.
    """
    environment = ToolEnvironment("flink", data=_FOLDER)
    if not environment.ready():
        with steps.at("install", "installing PyFlink, 400 MB") as step:
            environment.ensure(lambda said: None)
            step.said = f"PyFlink in {environment.folder}"
    cache = Cache.of_user()
    setting_up.fetch(cache, setting_up.due(cache, [_JARS]), steps)


@contextmanager
def flink(place: Place) -> Iterator[RunningFlink]:
    """The job's SQL."""
    (place.folder / "job.sql").write_text(_sql(place), encoding="utf-8")
    python = ToolEnvironment("flink", data=_FOLDER).bin / "python"
    jars, checkpoints = _JARS.folder(Cache.of_user()), place.folder / "checkpoints"
    command: list[str | Path] = [python, _FOLDER / "run_sql.py", place.folder / "job.sql", jars, str(SLOTS), checkpoints]
    command.append(_BACKENDS[place.backend])
    environment = {**os.environ, "JVM_ARGS": f"-Xmx{HEAP}", "TMPDIR": str(place.folder)}
    environment.pop("PYTHONPATH", None)
    with SupervisedProcess(command, env=environment, log=place.folder / "flink.log", cwd=place.folder) as process:
        yield RunningFlink(process)


def _sql(place: Place) -> str:
    assert place.workload.flink is not None
    brokers = f"'properties.bootstrap.servers' = '{place.brokers}'"
    kafka = f"'connector' = 'kafka', {brokers}, 'scan.startup.mode' = 'earliest-offset'"
    return place.workload.flink.format(topics=place.topics, kafka=kafka, brokers=brokers, sink=brokers, out=place.out)
