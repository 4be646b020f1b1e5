"""A separate Python environment for a tool whose packages conflict with Penstock's, created from a lock on first use."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from penstock.scripts.errors import MissingTool, ToolNotInstalled
from penstock.scripts.installation import locks, pip_settings, tool
from penstock.scripts.installation.cache import Cache

# LocalStack's 230 packages take pip a minute or two from a registry, and less from a cache.
INSTALL_LIMIT_S = 1_200
_STAMP = "complete"

Progress = Callable[[str], None]


class ToolEnvironment:
    """An environment in the user's cache, named by its lock and its Python. It is created again if its creation was interrupted.

    Args:
        name: of the tool; its lock is ``<name>.lock``.
        python: the Python to create it with; this one by default.
        cache: the user's by default.
        data: the folder of the locks; the package's own by default.
    """

    def __init__(self, name: str, *, python: str = sys.executable, cache: Cache | None = None, data: Path | None = None) -> None:
        self._name = name
        self._python = python
        self._cache = cache or Cache.of_user()
        self._lock = (data or locks.folder()) / f"{name}.lock"
        self.folder = self._cache.folder / name / locks.key(self._lock.read_bytes() + str(shutil.which(python)).encode())

    @property
    def bin(self) -> Path:
        """The folder of its commands."""
        return self.folder / "bin"

    def ready(self) -> bool:
        """Whether it exists and is complete."""
        return (self.folder / _STAMP).is_file()

    def ensure(self, progress: Progress = lambda said: None) -> Path:
        """Creates it if it does not exist.

        Args:
            progress: called with the output of the installation.

        Returns:
            The folder of its commands.

        Raises:
            MissingTool: TOOL-001, its Python does not exist.
            ToolNotInstalled: TOOL-024.
            PenstockError: TOOL-015, TOOL-016, the cache cannot be used.
        """
        self._cache.check_layout()
        if not self.ready():
            with self._alone():
                if not self.ready():
                    self._make(progress)
        return self.bin

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Two processes never create it concurrently; the second waits and uses it."""
        with self._cache.written_to():
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            with (self.folder.parent / "setup.lock").open("w") as held:
                fcntl.flock(held, fcntl.LOCK_EX)
                yield

    def _make(self, progress: Progress) -> None:
        if shutil.which(self._python) is None:
            fix = f"install {self._python}, and retry"
            raise MissingTool(path=self._python, need=f"it in PATH, to run {self._name}", fix=fix)
        shutil.rmtree(self.folder, ignore_errors=True)
        progress(f"making {self.folder}")
        self._run([self._python, "-m", "venv", str(self.folder)], progress)
        self._install(progress)
        (self.folder / _STAMP).touch()

    def _install(self, progress: Progress) -> None:
        """With uv if there is one, otherwise, or if it fails, with pip."""
        python, found = str(self.bin / "python"), uv()
        if found is not None:
            variables = {**pip_settings.variables(pip_settings.listed(python), os.environ), "UV_NO_PROGRESS": "1"}
            command = [found, "pip", "install", "--python", python, "--require-hashes", "--no-deps", "-r", str(self._lock)]
            if self._ran(command, progress, variables).code == 0:
                return
        pip = [python, "-m", "pip", "install", "--require-hashes", "--no-input", "--disable-pip-version-check"]
        self._run([*pip, "-r", str(self._lock)], progress)

    def _ran(self, command: list[str], progress: Progress, variables: Mapping[str, str] | None = None) -> tool.Ended:
        environment = {**own_variables(os.environ), **(variables or {})}
        return tool.run(command, environment=environment, log=self._log, limit_s=INSTALL_LIMIT_S, progress=progress)

    def _run(self, command: list[str], progress: Progress) -> None:
        ended = self._ran(command, progress)
        if ended.code != 0:
            need = f"a successful installation of {self._lock.name} within {INSTALL_LIMIT_S / 60:.0f} minutes"
            given = f"code {ended.code}; the end of {self._log}:\n{ended.said}"
            raise ToolNotInstalled(path=self._name, given=given, need=need, fix="correct the reported error, and retry")

    @property
    def _log(self) -> Path:
        return self._cache.logs / f"{self._name}.log"


def uv() -> str | None:
    """The uv beside this Python, which the set-up installs, or the one of the PATH; None if neither is recent enough."""
    beside = Path(sys.executable).with_name("uv")
    for candidate in (str(beside) if beside.exists() else None, shutil.which("uv")):
        if candidate is not None and _recent(candidate):
            return candidate
    return None


def _recent(uv: str) -> bool:
    version = re.match(r"uv (\d+)\.(\d+)", pip_settings.said([uv, "--version"]))
    return version is not None and (int(version[1]), int(version[2])) >= pip_settings.UV_LEAST


def own_variables(base: Mapping[str, str]) -> dict[str, str]:
    """Without this process's Python environment, which has other packages.

    Args:
        base: variables of a process.
    """
    return {name: value for name, value in base.items() if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
