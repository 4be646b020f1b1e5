"""A TCP server on this machine that sends lines of text to whoever connects."""

from __future__ import annotations

from penstock.scripts.local.servers.function_server import FunctionServer
from penstock.scripts.local.servers.local_server import HOST


class SocketServer(FunctionServer):
    """A running server; its function gives the lines, which each client gets from the first on.

    A client's connection stays open after the last line, as one to a source that just has nothing to say.
    """

    kind = "socket"

    @property
    def url(self) -> str:
        """``tcp://127.0.0.1:port``."""
        return f"tcp://{HOST}:{self.port}"

    @property
    def _module(self) -> str:
        return "penstock.scripts.local.servers.socket_program"
