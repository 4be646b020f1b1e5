"""A Python environment of its own for a tool whose packages don't go together with Penstock's, made from a lock when it is first used."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from penstock.scripts.errors import MissingTool, ToolNotInstalled
from penstock.scripts.layout import ROOT
from penstock.scripts.process.supervised import SupervisedProcess

# LocalStack's 230 packages take a minute or two from a registry, and less from pip's cache.
INSTALL_LIMIT_S = 1_200
_STAMP = "penstock-lock.sha256"
_POLL_S = 0.2

Progress = Callable[[str], None]


class ToolEnvironment:
    """An environment in the checkout's own folder. It is made again where its lock has changed or its making was interrupted.

    Args:
        name: of the tool; ``requirements/<name>.lock`` is what it gets.
        python: the Python that it is made with; this one by default.
        root: the checkout.
    """

    def __init__(self, name: str, *, python: str = sys.executable, root: Path = ROOT) -> None:
        self._name = name
        self._python = python
        self._lock = root / "requirements" / f"{name}.lock"
        self._root = root
        self.folder = root / ".penstock" / name

    @property
    def bin(self) -> Path:
        """Where its commands are."""
        return self.folder / "bin"

    def ready(self) -> bool:
        """Whether it is there, whole, and made from the lock as it is now."""
        stamp = self.folder / _STAMP
        return stamp.is_file() and stamp.read_text(encoding="utf-8") == self._wanted()

    def ensure(self, progress: Progress = lambda said: None) -> Path:
        """Makes it, where it is not there.

        Args:
            progress: called with what the installation says.

        Returns:
            The folder of its commands.

        Raises:
            MissingTool: TOOL-001, its Python is not there.
            ToolNotInstalled: TOOL-024.
        """
        if not self.ready():
            with self._alone():
                if not self.ready():
                    self._make(progress)
        return self.bin

    def _wanted(self) -> str:
        text = self._lock.read_bytes() + str(shutil.which(self._python)).encode()
        return hashlib.sha256(text).hexdigest()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Two processes never make it at the same time; the second waits and finds it made."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with (self.folder.parent / f"{self._name}.lock").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield

    def _make(self, progress: Progress) -> None:
        if shutil.which(self._python) is None:
            fix = f"install {self._python}, and run this again"
            raise MissingTool(path=self._python, need=f"it, in PATH, to run {self._name} with", fix=fix)
        shutil.rmtree(self.folder, ignore_errors=True)
        progress(f"making {self.folder.relative_to(self._root)}")
        self._run([self._python, "-m", "venv", str(self.folder)], progress)
        pip = [str(self.bin / "python"), "-m", "pip", "install", "--require-hashes", "--no-input", "--disable-pip-version-check"]
        self._run([*pip, "-r", str(self._lock)], progress)
        (self.folder / _STAMP).write_text(self._wanted(), encoding="utf-8")

    def _run(self, command: list[str], progress: Progress) -> None:
        log = self.folder.parent / f"{self._name}.log"
        log.unlink(missing_ok=True)
        until_s, said = time.monotonic() + INSTALL_LIMIT_S, ""
        with SupervisedProcess(command, env=_own_variables(os.environ), log=log, grace_s=5) as supervised:
            while supervised.alive() and time.monotonic() < until_s:
                last = supervised.tail(1).strip()[:100]
                if last != said:
                    said = last
                    progress(said)
                time.sleep(_POLL_S)
        if supervised.returncode != 0:
            need = f"an installation of requirements/{self._lock.name} that ends well within {INSTALL_LIMIT_S / 60:.0f} minutes"
            given = f"code {supervised.returncode}; the end of {log}:\n{supervised.tail(8)}"
            raise ToolNotInstalled(path=self._name, given=given, need=need, fix="mend what it says, and run this again")


def _own_variables(base: Mapping[str, str]) -> dict[str, str]:
    """Nothing of the environment that this process runs in: it has other packages."""
    return {name: value for name, value in base.items() if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
