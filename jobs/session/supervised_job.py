"""A job of a session: its process is started, started again after a failure or a change, and stopped."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
import traceback
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO

from penstock.jobs.configuration.runtime import READY_FILE_VARIABLE, TERMINATION_FILE_VARIABLE
from penstock.jobs.configuration.session import SessionJob, log_line
from penstock.jobs.driver.backoff import Backoff
from penstock.jobs.driver.micro_batch import Emit
from penstock.jobs.session.session_spark import Gateway, SessionSpark

# A process that is to stop finishes its micro-batch within the time after which it would hang, and reports it.
_REPORT_S = 60.0


class SupervisedJob:
    """One job of a session, in a thread of its own: whatever becomes of it, the others go on.

    Args:
        name: of the job.
        spark: of the session.
        folder: for its files.
        emit: reports an event.
        backoff: the waits after failures.
    """

    def __init__(self, name: str, spark: SessionSpark, folder: Path, emit: Emit, backoff: Backoff | None = None) -> None:
        self.name = name
        self._spark = spark
        self._folder = folder
        self._emit = emit
        self._backoff = backoff or Backoff()
        # What it is to be; None: stopped.
        self._wanted: SessionJob | None = None
        self._request = ""
        self._over = False
        # The process that runs it, and whether it has failed as it is.
        self._process: subprocess.Popen[bytes] | None = None
        self._failed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=f"penstock-job-{name}", daemon=True)
        self._thread.start()

    def want(self, job: SessionJob | None, request: str = "") -> None:
        """Has the job run as it is, with a new process if it has changed.

        Args:
            job: None: it is stopped.
            request: by which it is to run; another one ends the wait after a failure, and leaves a process that runs alone.
        """
        with self._changed:
            if (job, request) != (self._wanted, self._request):
                self._wanted, self._request, self._failed = job, request, False
                self._changed.notify_all()

    def end(self) -> None:
        """Has the job stop for good; `join` waits for it."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def join(self) -> None:
        """Waits until its process has ended."""
        self._thread.join()

    @property
    def settled(self) -> bool:
        """Whether it reads, is stopped, or has failed as it is: whether nothing more is to be waited for."""
        return self._wanted is None or self._failed or self._ready_file.exists()

    @property
    def reading(self) -> bool:
        """Whether its queries read."""
        return self._ready_file.exists()

    @property
    def _ready_file(self) -> Path:
        return self._folder / "ready"

    def _run(self) -> None:
        waited_s = 0.0
        while (job := self._next()) is not None:
            began_s = time.monotonic()
            code = self._survived(job)
            with self._changed:
                if not self._is_to_run(job):
                    waited_s = 0.0
                    continue
                self._failed = True
                waited_s = self._backoff.wait_s(waited_s, time.monotonic() - began_s)
                self._emit("restarting", {"job": self.name, "exitCode": code, "waitS": waited_s})
                if self._changed.wait_for(partial(self._is_asked, job, self._request), waited_s):
                    waited_s = 0.0

    def _next(self) -> SessionJob | None:
        """What is to run next; None: it is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or self._wanted is not None)
            return None if self._over else self._wanted

    def _is_to_run(self, job: SessionJob) -> bool:
        return not self._over and self._wanted == job

    def _is_asked(self, job: SessionJob, request: str) -> bool:
        """Whether a job that waits after a failure is to be something else, or is asked for again."""
        return not self._is_to_run(job) or self._request != request

    def _survived(self, job: SessionJob) -> int | None:
        """As `_run_once`; None of a process that could not be started: this thread has to try again."""
        try:
            return self._run_once(job)
        except Exception as error:
            traceback.print_exception(error)
            return None

    def _run_once(self, job: SessionJob) -> int:
        """Runs a process to its end, or until it is to be another. Returns its exit code."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        with self._spark.gateway() as gateway:
            process, events = self._started(job, gateway)
            work = (partial(self._relay, events), partial(self._relay_log, process), partial(self._wait, process))
            threads = [threading.Thread(target=one, daemon=True) for one in work]
            for thread in threads:
                thread.start()
            with self._changed:
                self._changed.wait_for(lambda: process.poll() is not None or not self._is_to_run(job))
            code = _ended(process, job.configuration.progress_timeout_s + _REPORT_S)
            for thread in threads:
                thread.join()
            assert process.stdin is not None
            process.stdin.close()
        self._ready_file.unlink(missing_ok=True)
        return code

    def _started(self, job: SessionJob, gateway: Gateway) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
        file = self._folder / "session-job.json"
        # Connections may have credentials on a developer's machine.
        file.touch(0o600)
        file.write_text(job.model_dump_json(by_alias=True), encoding="utf-8")
        read, write = os.pipe()
        module = "penstock.jobs.session.job_process"
        command = [sys.executable, "-m", module, self.name, str(file), "--folder", str(self._folder), "--events", f"/dev/fd/{write}"]
        environment = {
            **{name: value for name, value in os.environ.items() if name != TERMINATION_FILE_VARIABLE},
            "PYSPARK_GATEWAY_PORT": str(gateway.port),
            "PYSPARK_GATEWAY_SECRET": gateway.secret,
            READY_FILE_VARIABLE: str(self._ready_file),
        }
        try:
            # Apart from this process's group: a signal to that is for the driver, which stops the jobs.
            process = subprocess.Popen(
                command,
                env=environment,
                pass_fds=[write],
                # Its end is that of this process, with which the job's process ends too.
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except BaseException:
            os.close(read)
            raise
        finally:
            os.close(write)
        return process, os.fdopen(read, "rb")

    def _relay(self, events: IO[bytes]) -> None:
        with events:
            for line in events:
                # The last line of a killed process may be cut.
                with suppress(ValueError):
                    detail = json.loads(line)
                    self._emit(str(detail.pop("event")), detail)

    def _relay_log(self, process: subprocess.Popen[bytes]) -> None:
        """Writes what the process prints to this process's log, each line with the name of its job, as `penstock logs` picks them."""
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                # In one call: the other jobs write theirs.
                sys.stderr.write(log_line(self.name, line.decode("utf-8", "replace")))
                sys.stderr.flush()

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        with self._changed:
            self._changed.notify_all()


def _ended(process: subprocess.Popen[bytes], grace_s: float) -> int:
    """The exit code of a process that has ended, or that is asked to."""
    if process.poll() is None:
        process.terminate()
    try:
        return process.wait(grace_s)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
