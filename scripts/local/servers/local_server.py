"""What the servers have in common: a free port on loopback, a process that ends with this one, a folder that goes with it."""

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
    """A server on a free port of 127.0.0.1, with its data in a folder that is gone when it ends.

    Args:
        folder: a missing or empty folder for its data and its log.
        log: the file that gets what the server writes; by default in the folder's own parent, beside it.
    """

    kind: ClassVar[str]
    # What asks the server to end in order.
    ask: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(self, folder: Path, *, log: Path | None = None) -> None:
        self.folder = folder.absolute()
        self.log = log or self.folder.with_name(f"{self.folder.name}.log")
        self._port = 0
        # One for each time that it was started; the last one runs.
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
        """Where clients find it, credentials included."""

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._supervised_processes[-1].pid

    def start(self) -> Self:
        """Starts it, for the first time or after `kill`, and waits until it answers.

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
        """Ends it by SIGKILL, as a machine that is switched off; its data stays. Returns when it is gone."""
        os.kill(self.pid, signal.SIGKILL)
        while self._supervised_processes[-1].alive():
            time.sleep(POLL_S)

    def check(self) -> None:
        """Nothing while it runs.

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
        """Ends it and removes its folder; does nothing the second time."""
        while self._supervised_processes:
            self._supervised_processes.pop().stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @abstractmethod
    def _prepare(self) -> None:
        """Makes what it needs in its folder, once."""

    @abstractmethod
    def _command(self) -> Sequence[str | Path]:
        """The server on `port`."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether it can be used; asked until it can."""

    def _environment(self) -> Mapping[str, str]:
        return os.environ

    def _may_try_again(self, said: str) -> bool:
        """Whether what it said before it died goes away by itself."""
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
                # A new port may be another's by now; on its old one, what the server left behind may take a moment to go.
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
    """A port of 127.0.0.1 that nobody listens on just now."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return int(listener.getsockname()[1])


def listens(port: int) -> bool:
    """Whether somebody accepts connections on a port of 127.0.0.1."""
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex((HOST, port)) == 0


def brought_by(package: str, place: str) -> Path:
    """A program that a Python package brings; the package itself is not imported.

    Args:
        package: its import name.
        place: of the program, below the package's folder.

    Raises:
        LocalServerMissing: RUN-033.
    """
    found = find_spec(package)
    folder = Path(found.origin).parent if found and found.origin else None
    if folder is None or not (folder / place).exists():
        need = f"{place} of the Python package {package}"
        raise LocalServerMissing(path=package, need=need, fix="./scripts/setup, on Linux or macOS")
    return folder / place
