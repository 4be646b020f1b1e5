"""The servers of one job: started for its connections, filled by the spec's own functions, and ended with the run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from penstock.jobs.errors import MissingField
from penstock.jobs.spec import LocalConnection, LocalHttp, LocalPostgres, LocalRedis, LocalSocket, SpecFile, named_connections
from penstock.scripts.local.servers.errors import LocalServerNotFilled
from penstock.scripts.local.servers.http_endpoint import HttpEndpoint
from penstock.scripts.local.servers.local_server import LocalServer
from penstock.scripts.local.servers.named import named
from penstock.scripts.local.servers.postgres_server import PostgresServer
from penstock.scripts.local.servers.redis_server import RedisServer
from penstock.scripts.local.servers.socket_server import SocketServer
from penstock.sizing.errors import PenstockError


def without_server(spec: SpecFile, needed: Collection[str] | None = None) -> list[PenstockError]:
    """SPEC-005 for each connection of a job without a local server.

    Args:
        spec: the job's.
        needed: connections that need one; None: all.
    """
    named, local = named_connections(spec.job.spec), spec.job.spec.local.connections
    missing = {one.name: one for one in named if one.name not in local and (needed is None or one.name in needed)}
    return [
        spec.document.locate(
            MissingField(
                path=f"spec.local.connections.{name}",
                given="",
                need=f"a local server for connection {name}",
                fix=f"connections: {{{name}: {{{one.kind}: module:function}}}} below spec.local",
            ),
            one.place,
        )
        for name, one in missing.items()
    ]


class LocalServers:
    """All servers of a job.

    Args:
        spec: the job's.
        app_path: folders in which the spec's functions are looked up.
        folder: a missing or empty folder for their data and logs.
    """

    def __init__(self, spec: SpecFile, app_path: Sequence[Path], folder: Path) -> None:
        self._spec = spec
        self._app_path = tuple(app_path)
        self._held = ExitStack()
        self._servers: dict[str, LocalServer] = {
            name: _server(asked, folder / name, self._app_path) for name, asked in spec.job.spec.local.connections.items()
        }
        self.lines: dict[str, list[str]] = {}

    def __enter__(self) -> LocalServers:
        try:
            # Each waits for its own process.
            with ThreadPoolExecutor(max_workers=4) as pool:
                list(pool.map(self._held.enter_context, self._servers.values()))
            for name, asked in self._spec.job.spec.local.connections.items():
                self._fill(name, asked)
        except BaseException:
            self._held.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._held.close()

    @property
    def urls(self) -> dict[str, str]:
        """Name of the connection -> URL, credentials included."""
        return {name: server.url for name, server in self._servers.items()}

    def __getitem__(self, name: str) -> LocalServer:
        """The server for a connection."""
        return self._servers[name]

    def check(self) -> None:
        """Returns while all of them run.

        Raises:
            LocalServerDied: RUN-030.
        """
        for server in self._servers.values():
            server.check()

    def said(self) -> str:
        """What runs where, for people."""
        return ", ".join(f"{server.kind} for {name} on port {server.port}" for name, server in self._servers.items())

    def _fill(self, name: str, asked: LocalConnection) -> None:
        try:
            function = self._function(asked.function)
            self._given(name, self._servers[name], function)
        except PenstockError as error:
            raise self._spec.document.locate(error, ("spec", "local", "connections", name)) from None
        except Exception as error:
            need = f"an importable function that returns the server's initial data; {type(error).__name__}: {error}"
            fault = LocalServerNotFilled(given=asked.function, need=need, fix="correct the reference or the function")
            raise self._spec.document.locate(fault, ("spec", "local", "connections", name)) from error

    def _given(self, name: str, server: LocalServer, function: Callable[..., Any]) -> None:
        if isinstance(server, PostgresServer):
            server.run(_text(function()))
        elif isinstance(server, RedisServer):
            server.fill(_hashes(function()))
        elif isinstance(server, SocketServer):
            self.lines[name] = list(function())

    def _function(self, reference: str) -> Callable[..., Any]:
        for folder in self._app_path:
            if str(folder) not in sys.path:
                sys.path.insert(0, str(folder))
        return named(reference)


def _server(asked: LocalConnection, folder: Path, app_path: Sequence[Path]) -> LocalServer:
    match asked:
        case LocalPostgres():
            return PostgresServer(folder)
        case LocalRedis():
            return RedisServer(folder)
        case LocalHttp():
            return HttpEndpoint(folder, asked.http, app_path)
        case LocalSocket():
            return SocketServer(folder, asked.socket, app_path)


def _text(sql: object) -> str:
    """SQL as one text or several."""
    if isinstance(sql, str):
        return sql
    if isinstance(sql, Iterable):
        return ";\n".join(str(part) for part in sql)
    raise TypeError(f"an SQL string, or a list of them, not {type(sql).__name__}")


def _hashes(given: Mapping[str, Mapping[str, object]]) -> dict[str, dict[str, str]]:
    return {key: {field: str(value) for field, value in fields.items()} for key, fields in given.items()}
