"""A local TCP server that sends lines of text to every client."""

from __future__ import annotations

from penstock.scripts.local.servers.function_server import FunctionServer
from penstock.scripts.local.servers.local_server import HOST


class SocketServer(FunctionServer):
    """A running server; its function returns the lines, which each client receives from the first one on.

    A client's connection stays open after the last line, like one to a source that has no new data.
    """

    kind = "socket"

    @property
    def url(self) -> str:
        """``tcp://127.0.0.1:port``."""
        return f"tcp://{HOST}:{self.port}"

    @property
    def _module(self) -> str:
        return "penstock.scripts.local.servers.socket_program"
