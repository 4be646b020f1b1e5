"""The driver program of a session: ``python -m penstock.jobs.session.runtime SESSION.json [--requests FOLDER] [--events FILE]``.

Starts Spark, and runs each job of the file in a process of its own until it is stopped (SIGTERM or SIGINT), each job at a micro-batch
boundary. The file is looked at while it runs: a job that has changed in it is stopped and started as it is now, one that is added is
started, one that is gone is stopped, and nothing becomes of the others. A job whose file in the folder of requests says ``stop`` does not
run. A job whose process fails is started again, after 10 s, 20 s and so on up to 5 minutes, as the kubelet does with a container, or at
once when its file in that folder changes.

Events are those of `penstock.jobs.driver.runtime`, each with the name of its ``job``, and of the session itself: ``session``, with
its ``name``, its ``state`` (``starting``, ``running``, ``stopping``, ``stopped``, ``failed``) and its ``jobs``; ``restarting`` of a
``job``, with the ``exitCode`` of its process and the seconds until it is started again, ``waitS``. Exit code 0 after a stop, 5 if Spark
ends.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from penstock.jobs.configuration.session import REQUESTS_FOLDER, STOP, SessionConfiguration
from penstock.jobs.driver.backoff import Backoff
from penstock.jobs.driver.micro_batch import Emit
from penstock.jobs.driver.pod import forget_ready, leave_message, reported_ready
from penstock.jobs.driver.runtime import EventWriter, stop_requests
from penstock.jobs.session.errors import SparkEnded
from penstock.jobs.session.session_spark import SessionSpark
from penstock.jobs.session.supervised_job import SupervisedJob
from penstock.sizing.errors import PenstockError

# The kubelet needs a minute to mount a changed file: looking at it is cheap, and sooner is of no use.
_LOOK_S = 1.0


def main(arguments: list[str]) -> int:
    """Runs the session of a configuration file."""
    parser = argparse.ArgumentParser(prog="python -m penstock.jobs.session.runtime")
    parser.add_argument("configuration", type=Path)
    parser.add_argument("--requests", type=Path, default=Path(REQUESTS_FOLDER), help="a folder with a file for each job that is asked for")
    parser.add_argument("--events", type=Path, help="a file or pipe for the events; standard output by default")
    parsed = parser.parse_args(arguments)
    stop = stop_requests()
    with parsed.events.open("a", encoding="utf-8") if parsed.events else contextlib.nullcontext(sys.stdout) as out:
        session = Session(parsed.configuration, stop, EventWriter(out), requests=parsed.requests)
        try:
            session.run()
        except PenstockError as error:
            print(error.render(), file=sys.stderr, flush=True)
            leave_message(error)
            return error.exit_code
    return 0


class Session:
    """A session from its start to its end.

    Args:
        file: its configuration.
        stop: set from outside to stop it.
        emit: reports an event.
        requests: folder with a file for each job that somebody has asked something of; None: there is none.
        backoff: the waits after failures of a job.
    """

    def __init__(
        self, file: Path, stop: threading.Event, emit: Emit, *, requests: Path | None = None, backoff: Backoff | None = None
    ) -> None:
        self._file = file
        self._stop = stop
        self._emit = emit
        self._requests = requests
        self._backoff = backoff
        self._text = file.read_text(encoding="utf-8")
        self._configuration = SessionConfiguration.model_validate_json(self._text)
        self._jobs: dict[str, SupervisedJob] = {}
        self._ready = contextlib.ExitStack()

    def run(self) -> None:
        """Starts Spark and runs the jobs until the session is stopped.

        Raises:
            SparkEnded: JOB-114.
        """
        forget_ready()
        self._say("starting")
        spark = SessionSpark(self._configuration)
        with tempfile.TemporaryDirectory(prefix="penstock-session-") as folder, self._ready:
            try:
                self._run(spark, Path(folder))
            finally:
                self._say("stopping")
                for job in self._jobs.values():
                    job.end()
                for job in self._jobs.values():
                    job.join()
                spark.stop()
        self._say("stopped")

    def _run(self, spark: SessionSpark, folder: Path) -> None:
        self._say("running")
        ready = False
        while True:
            self._follow(spark, folder)
            if not ready and all(job.settled for job in self._jobs.values()):
                self._ready.enter_context(reported_ready())
                ready = True
            if spark.ended:
                self._say("failed")
                fix = "check the driver's log: a JVM that is out of memory, or executors that fail too often"
                raise SparkEnded(path=f"session {self._configuration.name}", given="Spark has stopped by itself", fix=fix)
            for name, job in self._jobs.items():
                spark.show_reading(name, job.reading)
            if self._stop.wait(_LOOK_S):
                return

    def _follow(self, spark: SessionSpark, folder: Path) -> None:
        """Has each job be as the file, and the folder of requests, say now."""
        self._read()
        spark.ask_for(self._configuration.executors)
        for name in self._jobs.keys() - self._configuration.jobs.keys():
            self._jobs[name].want(None)
        for name, job in self._configuration.jobs.items():
            if name not in self._jobs:
                self._jobs[name] = SupervisedJob(name, spark, folder / name, self._emit, self._backoff)
            request = self._request(name)
            self._jobs[name].want(None if request == STOP else job, request)

    def _request(self, job: str) -> str:
        """What somebody has asked of a job; empty if nobody has asked anything."""
        if self._requests is None:
            return ""
        try:
            return (self._requests / job).read_text(encoding="utf-8").strip()
        except OSError:
            return ""

    def _read(self) -> None:
        """Takes the file as it is now; if it can't be read, the session goes on as it was."""
        try:
            text = self._file.read_text(encoding="utf-8")
            if text == self._text:
                return
            self._text = text
            self._configuration = SessionConfiguration.model_validate_json(text)
        except (OSError, ValidationError) as error:
            print(f"WARN the session goes on as it was: {self._file} can't be read: {error}", file=sys.stderr, flush=True)

    def _say(self, state: str) -> None:
        detail: Mapping[str, object] = {"name": self._configuration.name, "state": state, "jobs": sorted(self._configuration.jobs)}
        self._emit("session", detail)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
