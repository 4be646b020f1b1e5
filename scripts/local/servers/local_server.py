"""The common part of the servers: a free port on loopback, a supervised process, a folder that is removed with it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from penstock.scripts.local.servers.errors import LocalServerDied, LocalServerMissing, LocalServerNotReady
from penstock.scripts.process.supervised import SupervisedProcess

HOST = "127.0.0.1"
# The slowest of them starts in two seconds on a quiet machine.
START_LIMIT_S = 90
POLL_S = 0.02
_PORT_TRIES = 5


class LocalServer(ABC):
    """A server on a free port of 127.0.0.1, with its data in a folder that is removed when it ends.

    Args:
        folder: a missing or empty folder for its data and its log.
        log: the file for the server's output; by default next to the folder.
    """

    kind: ClassVar[str]
    # The signal for an orderly shutdown.
    ask: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(self, folder: Path, *, log: Path | None = None) -> None:
        self.folder = folder.absolute()
        self.log = log or self.folder.with_name(f"{self.folder.name}.log")
        self._port = 0
        # One per start; the last one is running.
        self._supervised_processes: list[SupervisedProcess] = []

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def port(self) -> int:
        """The port that it listens on; it stays the same over `kill` and `start`."""
        if not self._port:
            raise ValueError(f"{self.kind} has not been started")
        return self._port

    @property
    @abstractmethod
    def url(self) -> str:
        """Its URL, credentials included."""

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._supervised_processes[-1].pid

    def start(self) -> Self:
        """Starts it, for the first time or after `kill`, and waits until it responds.

        Raises:
            LocalServerDied: RUN-030.
            LocalServerNotReady: RUN-031.
            LocalServerMissing: RUN-033.
        """
        try:
            if not self._port:
                self.folder.mkdir(parents=True, exist_ok=True)
                self._prepare()
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def kill(self) -> None:
        """Kills it with SIGKILL, like a power failure; its data stays. Returns when it has exited."""
        os.kill(self.pid, signal.SIGKILL)
        while self._supervised_processes[-1].alive():
            time.sleep(POLL_S)

    def check(self) -> None:
        """Returns while it runs.

        Raises:
            LocalServerDied: RUN-030.
        """
        if self._supervised_processes and not self._supervised_processes[-1].alive():
            last = self._supervised_processes[-1]
            given = f"exit code {last.returncode}; the end of its log, {self.log}:\n{last.tail()}"
            raise LocalServerDied(
                path=self.kind, given=given, need="a server that runs until it is stopped", fix="check its log, and retry"
            )

    def stop(self) -> None:
        """Ends it and removes its folder; idempotent."""
        while self._supervised_processes:
            self._supervised_processes.pop().stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @abstractmethod
    def _prepare(self) -> None:
        """Creates what it needs in its folder, once."""

    @abstractmethod
    def _command(self) -> Sequence[str | Path]:
        """The command that starts the server on `port`."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether it is ready; polled until it is."""

    def _environment(self) -> Mapping[str, str]:
        return os.environ

    def _may_try_again(self, said: str) -> bool:
        """Whether the cause in its last output is transient."""
        return "ddress already in use" in said

    def _start(self) -> None:
        known, until_s, tries = self._port, time.monotonic() + START_LIMIT_S, 0
        while True:
            tries += 1
            before = self.log.stat().st_size if self.log.exists() else 0
            self._port = known or free_port()
            try:
                self._start_once(until_s)
            except LocalServerDied:
                said = self.log.read_bytes()[before:].decode("utf-8", "replace")
                # A new port may have been taken by another process; on the old one, remains of the server may take a moment to go.
                again = time.monotonic() < until_s if known else tries < _PORT_TRIES
                if not again or not self._may_try_again(said):
                    raise
            else:
                return

    def _start_once(self, until_s: float) -> None:
        supervised = SupervisedProcess(self._command(), env=self._environment(), log=self.log, remove=self.folder, ask=self.ask)
        self._supervised_processes.append(supervised.start())
        while not self._answers():
            self.check()
            if time.monotonic() > until_s:
                need = f"a response within {START_LIMIT_S} s"
                raise LocalServerNotReady(path=self.kind, given=f"{HOST}:{self._port}", need=need, fix=f"check {self.log}, and retry")
            time.sleep(POLL_S)


def free_port() -> int:
    """A port of 127.0.0.1 that is currently free."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return int(listener.getsockname()[1])


def listens(port: int) -> bool:
    """Whether a port of 127.0.0.1 accepts connections."""
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex((HOST, port)) == 0


def brought_by(package: str, place: str) -> Path:
    """A program that a Python package contains; the package itself is not imported.

    Args:
        package: its import name.
        place: of the program, below the package's folder.

    Raises:
        LocalServerMissing: RUN-033.
    """
    spec = find_spec(package)
    folder = Path(spec.origin).parent if spec and spec.origin else None
    if folder is None or not (folder / place).exists():
        need = f"{place} of the Python package {package}"
        raise LocalServerMissing(path=package, need=need, fix="./scripts/setup, on Linux or macOS")
    return folder / place
