"""When a driver is started again, and what is left of the last one: with real processes, which report as a driver does."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest
from rich.console import Console

from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.driver.backoff import Backoff
from penstock.jobs.driver.errors import JobStopped
from penstock.jobs.kafka.errors import BrokersUnreachable
from penstock.scripts.local.driver import LocalDriver
from penstock.scripts.local.supervisor import Supervisor
from penstock.scripts.progress import Steps
from penstock.sizing.errors import PenstockError

# For what has no event to wait for; nothing here takes this long.
WITHIN_S = 30
AT_ONCE = Backoff(first_s=0.01, longest_s=0.01)
NEVER = Backoff(first_s=1000, longest_s=1000)

HEAD = """\
import json, os, signal, sys, time
def say(event, **detail):
    with open(sys.argv[1], "a") as events:
        events.write(json.dumps({"event": event, **detail}) + "\\n")
def fail(code):
    said = {"path": "brokers", "given": "b-1:9098", "need": "", "fix": "", "file": None, "line": None, "column": None}
    say("failed", errors=[{"code": code, **said}])
    sys.exit(5)
"""
RUN = """\
def stop(*_):
    say("stopped")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
say("reading", ui="http://127.0.0.1:4040")
while True:
    time.sleep(1)
"""
# A process of the driver's group that does not end by itself.
LEAVE = "import subprocess\nchild = subprocess.Popen(['sleep', '1000'])\nopen('../child', 'w').write(str(child.pid))\n"
KILLED = "os.kill(os.getpid(), signal.SIGKILL)\n"
DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nsay('reading', ui='u')\nwhile True:\n    time.sleep(1)\n"


class Script(LocalDriver):
    """A driver that is a short program instead of a job's."""

    def __init__(self, program: str, folder: Path) -> None:
        folder.mkdir()
        configuration = RuntimeConfiguration(spec="", master="", brokers="", job_folder="", output_bucket="")
        super().__init__(configuration, folder=folder, log=folder.parent / "log", environment={}, grace_s=WITHIN_S)
        python, pipe = self._supervised.argv[0], self._supervised.argv[-1]
        self._supervised.argv = [python, "-I", "-S", "-c", HEAD + program, pipe]


class Supervised:
    """A supervisor of programs, one after another; the last one also is each further one.

    Args:
        folder: for their files.
        programs: what they do.
        backoff: the waits.
        over: why the job is not started again.
        over_at: the first start after which that is so.
    """

    def __init__(self, folder: Path, *programs: str, backoff: Backoff = AT_ONCE, over: str | None = None, over_at: int = 1) -> None:
        self._folder, self._programs = folder, programs
        self._said = io.StringIO()
        self.starts = 0
        self.asked: list[datetime] = []
        self.alive_at_start: list[bool] = []
        self._over, self._over_at = over, over_at
        console = Console(file=self._said, soft_wrap=True)
        self.supervisor = Supervisor("clicks", self._started, self._why_over, Steps(console), backoff)

    @property
    def said(self) -> str:
        """The lines so far."""
        return self._said.getvalue()

    def until(self, text: str, then: Callable[[], None]) -> threading.Thread:
        """Does something as soon as a text has been said."""

        def wait() -> None:
            until_s = time.monotonic() + WITHIN_S
            while text not in self.said and time.monotonic() < until_s:
                time.sleep(0.01)
            then()

        thread = threading.Thread(target=wait)
        thread.start()
        return thread

    @contextmanager
    def _started(self) -> Iterator[Script]:
        child = self._folder / "child"
        self.alive_at_start.append(child.exists() and Path(f"/proc/{child.read_text()}").exists())
        program = self._programs[min(self.starts, len(self._programs) - 1)]
        self.starts += 1
        with Script(program, self._folder / f"driver-{self.starts}") as driver:
            yield driver

    def _why_over(self, since: datetime) -> str | None:
        self.asked.append(since)
        return self._over if self.starts >= self._over_at else None


def test_the_waits_are_those_of_the_kubelet() -> None:
    waits, last_s = [], 0.0
    for ran_s in (0, 5, 599, 1, 1, 1, 1, 600, 1):
        last_s = Backoff().wait_s(last_s, ran_s)
        waits.append(last_s)
    assert waits == [10, 20, 40, 80, 160, 300, 300, 10, 20]


def test_a_driver_that_fails_or_is_killed_is_started_again_and_nothing_of_it_is_left(tmp_path: Path) -> None:
    job = Supervised(tmp_path, f"{LEAVE}fail('JOB-001')", f"{LEAVE}{KILLED}", RUN)
    stopping = job.until("reads its sources; Spark UI at http://127.0.0.1:4040", job.supervisor.interrupt)
    job.supervisor.run()
    stopping.join()
    assert (job.starts, job.alive_at_start) == (3, [False, False, False])
    assert "in 0.01 s, after JOB-001: Kafka brokers unreachable: b-1:9098\n" in job.said
    assert "in 0.01 s, after RUN-014: driver terminated unexpectedly: code -9\n" in job.said
    assert "clicks has stopped" in job.said


def test_a_job_that_has_finished_is_not_started_again(tmp_path: Path) -> None:
    read = "fileReads={'lines': {'partitions': 3, 'files': 3, 'bytes': 2048}}, repartitions=[10]"
    finished = "say('finished', totalRowsIn={'lines': 3000}, totalTags={'data': 746, 'late': 0, 'quarantined': 2})"
    job = Supervised(tmp_path, f"say('batch', {read})\nsay('batch', fileReads={{}}, repartitions=[])\n{finished}\nsay('stopped')\n")
    job.supervisor.run()
    assert job.starts == 1
    assert "clicks has read all of its bounded input: 3,000 records in, 746 rows out; 2 quarantined\n" in job.said
    said = " ".join(job.said.split())
    assert "partitions lines: 3 partitions of 3 files, 2.0 KiB 10 partitions after a repartition" in said


@pytest.mark.parametrize(("code", "asked"), [(BrokersUnreachable.code, 1), (JobStopped.code, 0)])
def test_a_job_that_is_stopped_ends_with_the_failure_that_stopped_it(tmp_path: Path, code: str, asked: int) -> None:
    job = Supervised(tmp_path, f"fail('{code}')", over="it fails again as long as the job does not change")
    with pytest.raises(PenstockError) as raised:
        job.supervisor.run()
    assert (raised.value.code, job.starts, len(job.asked)) == (code, 1, asked)
    assert ("is not started again as it is: it fails again" in job.said) == bool(asked)


def test_a_stop_while_it_waits_starts_no_driver(tmp_path: Path) -> None:
    job = Supervised(tmp_path, "fail('JOB-001')", backoff=NEVER)
    stopping = job.until("in 1000 s", job.supervisor.interrupt)
    job.supervisor.run()
    stopping.join()
    assert job.starts == 1


def test_a_second_interrupt_kills_a_driver_that_does_not_stop(tmp_path: Path) -> None:
    job = Supervised(tmp_path, DEAF)
    first = job.until("reads its sources", job.supervisor.interrupt)
    second = job.until("finishes its micro-batch", job.supervisor.interrupt)
    with pytest.raises(KeyboardInterrupt):
        job.supervisor.run()
    first.join()
    second.join()
    assert job.starts == 1


def test_a_failure_while_it_stops_is_the_jobs(tmp_path: Path) -> None:
    job = Supervised(tmp_path, RUN.replace('say("stopped")', "fail('JOB-001')"))
    stopping = job.until("reads its sources", job.supervisor.interrupt)
    with pytest.raises(BrokersUnreachable):
        job.supervisor.run()
    stopping.join()
    assert job.starts == 1


def test_restarts_keep_neither_files_nor_threads(tmp_path: Path) -> None:
    job = Supervised(tmp_path, "fail('JOB-001')", over="enough", over_at=4)
    before = len(list(Path("/proc/self/fd").iterdir())), threading.active_count()
    with pytest.raises(BrokersUnreachable):
        job.supervisor.run()
    assert (job.starts, (len(list(Path("/proc/self/fd").iterdir())), threading.active_count())) == (4, before)
