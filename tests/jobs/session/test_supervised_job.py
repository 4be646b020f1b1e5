"""A job of a session whose process fails: when it is started again, and what its driver says of it. The processes are real, and fail before
they need Spark.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.configuration.session import SPEC, SessionJob, is_of_job, log_line
from penstock.jobs.driver.backoff import Backoff
from penstock.jobs.session.session_spark import Gateway, SessionSpark
from penstock.jobs.session.supervised_job import SupervisedJob

LIMIT_S = 60
NEVER = Backoff(first_s=1000, longest_s=1000)
AT_ONCE = Backoff(first_s=0.01, longest_s=0.01)


class NoSpark:
    """Where no JVM is: nothing here comes to need it."""

    def __init__(self) -> None:
        self.refuses = False

    @contextmanager
    def gateway(self) -> Iterator[Gateway]:
        if self.refuses:
            raise OSError("no more processes")
        yield Gateway(1, "none")


class Supervised:
    """A job under supervision, and the events of it."""

    def __init__(self, folder: Path, backoff: Backoff) -> None:
        self.heard: list[tuple[str, Mapping[str, object]]] = []
        self._more = threading.Condition()
        self.spark = NoSpark()
        self.job = SupervisedJob("clicks", cast("SessionSpark", self.spark), folder / "clicks", self._emit, backoff)

    def _emit(self, event: str, detail: Mapping[str, object]) -> None:
        with self._more:
            self.heard.append((event, detail))
            self._more.notify_all()

    def wait_for(self, event: str, times: int) -> Mapping[str, Any]:
        """Waits until an event has come that often. Returns the last one."""
        with self._more:
            assert self._more.wait_for(lambda: len(self._all(event)) >= times, LIMIT_S), self.heard
            return self._all(event)[times - 1]

    def _all(self, event: str) -> list[Mapping[str, Any]]:
        return [detail for name, detail in self.heard if name == event]


@contextmanager
def supervised(folder: Path, backoff: Backoff) -> Iterator[Supervised]:
    one = Supervised(folder, backoff)
    try:
        yield one
    finally:
        one.job.end()
        one.job.join()


def _job(spec: str = "kind: Nothing\n") -> SessionJob:
    configuration = RuntimeConfiguration(
        spec=SPEC, master="local[1]", brokers="127.0.0.1:1", job_folder="s3a://checkpoints/clicks", output_bucket="output"
    )
    return SessionJob(configuration=configuration, files={SPEC: spec})


def test_a_job_that_has_failed_waits_until_it_is_asked_for(tmp_path: Path) -> None:
    with supervised(tmp_path, NEVER) as one:
        one.job.want(_job())
        (error, *_) = one.wait_for("failed", 1)["errors"]
        assert error["code"].startswith("SPEC-")
        said = one.wait_for("restarting", 1)
        assert (said["job"], said["exitCode"], said["waitS"]) == ("clicks", 2, 1000)
        assert one.job.settled
        one.job.want(_job())
        one.job.want(_job(), "run, asked at noon")
        one.wait_for("restarting", 2)
        one.job.want(None)
        assert one.job.settled
    assert len(one.heard) == 4


def test_a_process_that_can_not_be_started_is_tried_again(tmp_path: Path) -> None:
    with supervised(tmp_path, AT_ONCE) as one:
        one.spark.refuses = True
        one.job.want(_job())
        assert one.wait_for("restarting", 2)["exitCode"] is None
        one.spark.refuses = False
        one.wait_for("failed", 1)


def test_what_a_process_prints_is_in_the_log_with_its_job(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with supervised(tmp_path, NEVER) as one:
        one.job.want(_job())
        one.wait_for("restarting", 1)
    printed = capfd.readouterr().err.splitlines()
    assert any("SPEC-" in line for line in printed)
    assert all(is_of_job("clicks", line) for line in printed)


@pytest.mark.parametrize(
    ("line", "of"),
    [
        (log_line("clicks", "Traceback (most recent call last):\n"), True),
        ('{"event": "committed", "job": "clicks", "batch": 3}\n', True),
        ('{"event": "committed", "job": "clicks-2", "batch": 3}\n', False),
        (log_line("clicks-2", "clicks: no\n"), False),
        ('{"ts":"2026-11-28T10:00:00Z","level":"WARN","msg":"clicks: of Spark"}\n', False),
        ("[1, 2]\n", False),
        ("\n", False),
    ],
)
def test_a_line_of_the_drivers_log_is_of_one_job(line: str, of: bool) -> None:
    assert is_of_job("clicks", line) == of


def test_a_process_ends_with_the_driver_that_has_started_it(tmp_path: Path) -> None:
    job = tmp_path / "job.json"
    job.write_text(_job().model_dump_json(by_alias=True), encoding="utf-8")
    # Opened by nobody, this pipe has it wait before it has anything to do.
    os.mkfifo(tmp_path / "events")
    command = [sys.executable, "-m", "penstock.jobs.session.job_process", "clicks", str(job), "--folder", str(tmp_path), "--events"]
    process = subprocess.Popen([*command, str(tmp_path / "events")], stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(LIMIT_S) == -signal.SIGKILL
