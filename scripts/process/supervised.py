"""A child process that ends when this one does, however this one ends.

`SupervisedProcess` starts a small supervisor (`scripts/process/supervisor.py`) that starts the command in a session of its own. The
supervisor reads a pipe
whose other end only this process holds: when this process ends, by its own will or by ``kill -9``, the pipe closes, and the supervisor
ends the
command's whole process group and removes the folder that it was given. Ctrl-C in the terminal reaches neither the supervisor nor the
command, so that this process can still talk to both while it cleans up.
"""

from __future__ import annotations

import contextlib
import os
import select
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

# The supervisor is a Python without site-packages: it says that the command runs after some 30 ms. A minute is for a machine that swaps.
START_LIMIT_S = 60
# What the supervisor may take beside the grace that the command gets: to send signals and to remove the folder.
SUPERVISOR_LIMIT_S = 30


class SupervisedProcess:
    """A command that runs until `stop`, or until this process ends.

    A command that ends by itself leaves its folder and its log where they are until `stop`, so that one can see why.

    Args:
        argv: the command and its arguments.
        env: the whole environment of the command.
        log: the file that gets what the command writes, appended; its folder is made.
        cwd: the command's working folder; this process's by default.
        remove: a folder that is removed after the end of the command.
        grace_s: seconds between the signal that asks the process group to end and SIGKILL, 0 or more.
        ask: that signal.
        led: whether the command alone is asked, for it needs its children to end well; the rest of the group is asked after its end.
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
        """The process id of the command, which is its process group's too."""
        if self._pid is None:
            raise ValueError("the command has not been started")
        return self._pid

    @property
    def returncode(self) -> int | None:
        """The command's exit code, minus the signal's number if one ended it; None while it runs or where nobody saw it end."""
        self._read_reports()
        return self._returncode

    def start(self) -> Self:
        """Starts the command.

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
        """Whether the command still runs."""
        if self._supervisor is None:
            return False
        self._read_reports()
        return not self._ended

    def stop(self) -> None:
        """Ends the command and its process group, then removes the folder; does nothing the second time."""
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
        """The last lines of the command's log; empty where there is none yet."""
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
        """Takes in what the supervisor says, a line each: ``started PID``, ``ended CODE``, ``refused WHY``."""
        while not self._ended and self._supervisor is not None:
            # Unbuffered, so that nothing that was read ahead is hidden from select.
            stream = _stream(self._supervisor.stdout)
            if not select.select([stream], [], [], wait_s)[0]:
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
        """Does the supervisor's work where somebody has killed it."""
        if self._pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
        if self._remove is not None:
            shutil.rmtree(self._remove, ignore_errors=True)


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise AssertionError("the supervisor has pipes")
    return stream
