"""What a function of the spec's answers for: servers whose work is done by Python, in a process of their own."""

from __future__ import annotations

import os
import sys
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.scripts.layout import python_path
from penstock.scripts.local.servers.local_server import LocalServer, listens


class FunctionServer(LocalServer):
    """A server that asks a function.

    Args:
        folder: a missing or empty folder for what it keeps.
        function: ``module:function``.
        app_path: folders in which the module is looked for, the nearest first.
        log: the file that gets what the server writes.
    """

    def __init__(self, folder: Path, function: str, app_path: Sequence[Path] = (), *, log: Path | None = None) -> None:
        super().__init__(folder, log=log)
        self._function = function
        self._app_path = tuple(app_path)

    @property
    @abstractmethod
    def _module(self) -> str:
        """The program of its process, as ``python -m`` takes it."""

    def _prepare(self) -> None:
        """Nothing: the process makes what it keeps."""

    def _command(self) -> Sequence[str | Path]:
        return [sys.executable, "-m", self._module, str(self._port), self._function, self.folder]

    def _environment(self) -> Mapping[str, str]:
        path = python_path(*self._app_path)
        return {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}

    def _answers(self) -> bool:
        return listens(self._port)
