"""Servers implemented by a function of the spec, in a separate process."""

from __future__ import annotations

import os
import sys
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.scripts.layout import python_path
from penstock.scripts.local.servers.local_server import LocalServer, listens


class FunctionServer(LocalServer):
    """A server that calls a function.

    Args:
        folder: a missing or empty folder for its data.
        function: ``module:function``.
        app_path: folders in which the module is looked up, in this order.
        log: the file for the server's output.
    """

    def __init__(self, folder: Path, function: str, app_path: Sequence[Path] = (), *, log: Path | None = None) -> None:
        super().__init__(folder, log=log)
        self._function = function
        self._app_path = tuple(app_path)

    @property
    @abstractmethod
    def _module(self) -> str:
        """The module of its process, for ``python -m``."""

    def _prepare(self) -> None:
        """Nothing: the process creates its own data."""

    def _command(self) -> Sequence[str | Path]:
        return [sys.executable, "-m", self._module, str(self._port), self._function, self.folder]

    def _environment(self) -> Mapping[str, str]:
        path = python_path(*self._app_path)
        return {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}

    def _answers(self) -> bool:
        return listens(self._port)
