"""A child process that ends when this one does, however this one ends.

`SupervisedProcess` starts a small supervisor (`scripts/process/supervisor.py`) that starts the command in its own session. The
supervisor reads a pipe whose other end only this process holds: when this process ends, normally or by ``kill -9``, the pipe closes, and
the supervisor stops the command's whole process group and removes the folder that it was given. Ctrl-C in the terminal reaches neither
the supervisor nor the command, so that this process can still talk to both while it cleans up.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from penstock.scripts.errors import CommandNotStarted

SUPERVISOR = Path(__file__).with_name("supervisor.py")

# The supervisor is a Python without site-packages and reports the start of the command after some 30 ms. A minute allows for a machine that
# swaps.
START_LIMIT_S = 60
# Time for the supervisor, in addition to the command's grace period, to send signals and to remove the folder.
SUPERVISOR_LIMIT_S = 30


class SupervisedProcess:
    """A command that runs until `stop`, or until this process ends.

    The folder and the log of a command that exits on its own stay until `stop`, for inspection.

    Args:
        argv: the command and its arguments.
        env: the complete environment of the command.
        log: file that the command's output is appended to; its folder is created.
        cwd: working folder of the command; this process's by default.
        remove: folder that is removed after the end of the command.
        grace_s: seconds between the stop signal and SIGKILL, 0 or more.
        ask: the stop signal.
        led: whether only the command gets the stop signal first, because it needs its children for a clean shutdown; the rest of the
            group gets it after the command has ended.
    """

    def __init__(
        self,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str],
        log: Path,
        cwd: Path | None = None,
        remove: Path | None = None,
        grace_s: float = 10,
        ask: signal.Signals = signal.SIGTERM,
        led: bool = False,
    ) -> None:
        self.argv = [str(word) for word in argv]
        self.log = log
        self._env = dict(env)
        self._cwd = cwd
        self._remove = remove
        self._grace_s = grace_s
        self._ask = ask
        self._led = led
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._pid: int | None = None
        self._returncode: int | None = None
        self._ended = False

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Process id of the command, also the id of its process group."""
        if self._pid is None:
            raise ValueError("the command has not been started")
        return self._pid

    @property
    def returncode(self) -> int | None:
        """Exit code of the command, or minus the signal's number if a signal ended it; None while it runs or if its end was not
        observed.
        """
        self._read_reports()
        return self._returncode

    def start(self) -> Self:
        """Start the command.

        Raises:
            CommandNotStarted: RUN-001, the command could not be executed.
        """
        if self._supervisor is not None:
            raise ValueError("a supervised process holds one command, once")
        self._supervisor = self._start_supervisor()
        try:
            self._wait_for_start()
        except BaseException:
            self.stop()
            raise
        return self

    def alive(self) -> bool:
        """Whether the command is still running."""
        if self._supervisor is None:
            return False
        self._read_reports()
        return not self._ended

    def stop(self) -> None:
        """Stop the command and its process group, then remove the folder; a second call does nothing."""
        if self._supervisor is None or self._supervisor.stdin is None or self._supervisor.stdin.closed:
            return
        self._supervisor.stdin.close()
        try:
            self._supervisor.wait(timeout=(2 if self._led else 1) * self._grace_s + SUPERVISOR_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._supervisor.kill()
            self._supervisor.wait()
        self._read_reports()
        _stream(self._supervisor.stdout).close()

    def tail(self, lines: int = 20) -> str:
        """Return the last lines of the command's log; empty while the log does not exist."""
        try:
            with self.log.open("rb") as file:
                return b"".join(deque(file, maxlen=lines)).decode("utf-8", "replace").rstrip("\n")
        except FileNotFoundError:
            return ""

    def _start_supervisor(self) -> subprocess.Popen[bytes]:
        led = "led" if self._led else ""
        options = [str(int(self._ask)), str(self._grace_s), led, str(self._remove.absolute()) if self._remove else ""]
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", str(SUPERVISOR), *options, *self.argv],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._env,
                cwd=self._cwd,
                start_new_session=True,
            )

    def _wait_for_start(self) -> None:
        deadline_s = time.monotonic() + START_LIMIT_S
        while self._pid is None and not self._ended and (left_s := deadline_s - time.monotonic()) > 0:
            self._read_reports(wait_s=left_s)
        if self._pid is None:
            raise CommandNotStarted(given=self.argv[0], need="an executable command", fix=f"check {self.log}")

    def _read_reports(self, wait_s: float = 0) -> None:
        """Process the supervisor's messages, one per line: ``started PID``, ``ended CODE``, ``refused WHY``."""
        while not self._ended and self._supervisor is not None:
            # Unbuffered, so that the pipe shows everything that was not read yet.
            stream = _stream(self._supervisor.stdout)
            if not _readable(stream, wait_s):
                return
            wait_s = 0
            word, _, value = stream.readline().decode().strip().partition(" ")
            self._take(word, value)

    def _take(self, word: str, value: str) -> None:
        if word == "started":
            self._pid = int(value)
            return
        self._ended = True
        if word == "ended":
            self._returncode = int(value)
        elif word == "refused":
            raise CommandNotStarted(given=self.argv[0], need=value, fix="check that it exists and is executable")
        else:
            self._end_without_supervisor()

    def _end_without_supervisor(self) -> None:
        """Do the supervisor's work after the supervisor was killed."""
        if self._pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
        if self._remove is not None:
            shutil.rmtree(self._remove, ignore_errors=True)


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise AssertionError("the supervisor has pipes")
    return stream


def _readable(stream: IO[bytes], wait_s: float) -> bool:
    """Whether a pipe has something to read, or has ended. select.select() could not say so of a process with a thousand open files."""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        return bool(selector.select(wait_s))
