"""The process of a TCP server: ``python -m penstock.scripts.local.servers.socket_program PORT MODULE:FUNCTION FOLDER``."""

from __future__ import annotations

import socketserver
import sys
from collections.abc import Callable, Iterable
from typing import ClassVar

from penstock.scripts.local.servers.local_server import HOST
from penstock.scripts.local.servers.named import named


class Handler(socketserver.StreamRequestHandler):
    """Sends all lines, then waits until the client disconnects."""

    lines: ClassVar[Callable[[], Iterable[str]]]

    def handle(self) -> None:
        """One client."""
        try:
            for line in type(self).lines():
                self.wfile.write(line.rstrip("\r\n").encode() + b"\n")
            while self.rfile.read(1):
                pass
        except ConnectionError:
            return


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def main(arguments: list[str]) -> None:
    """Serves until it is stopped."""
    port, function, _ = arguments
    Handler.lines = staticmethod(named(function))
    _Server((HOST, int(port)), Handler).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
