"""The process of an HTTP endpoint: ``python -m penstock.scripts.local.servers.http_program PORT MODULE:FUNCTION FOLDER``.

Each served request is a line of ``requests.jsonl`` in the folder, written before its response.
"""

from __future__ import annotations

import json
import sys
import threading
import traceback
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

from penstock.scripts.local.servers.local_server import HOST
from penstock.scripts.local.servers.named import named

Answer = Callable[[str, str, dict[str, str], bytes], tuple[int, Any]]


class Handler(BaseHTTPRequestHandler):
    """Responds by calling a function, whatever the method."""

    protocol_version = "HTTP/1.1"
    # A response's head and body are two small packets, of which the second would wait for the client's acknowledgement of the first.
    disable_nagle_algorithm = True
    answer: ClassVar[Answer]
    kept: ClassVar[Path]
    lock: ClassVar[threading.Lock] = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._do
        raise AttributeError(name)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Requests are recorded in the file; no access log is needed."""

    def _do(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        status, media_type, body_bytes = self._answered(headers, body)
        request = {"method": self.command, "path": self.path, "headers": headers, "body": body.decode("utf-8", "replace"), "status": status}
        with self.lock, self.kept.open("a", encoding="utf-8") as file:
            file.write(json.dumps(request) + "\n")
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body_bytes)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body_bytes)

    def _answered(self, headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        try:
            status, response = type(self).answer(self.command, self.path, headers, body)
            return int(status), *_body(response)
        except Exception:
            traceback.print_exc()
            return 500, *_body(b"")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Clients may connect all at once: a connection that does not fit in the backlog is retried by the client's system after a second.
    request_queue_size = 512


def _body(response: Any) -> tuple[str, bytes]:
    """The media type of a response, and its bytes."""
    if isinstance(response, bytes):
        return "application/octet-stream", response
    if isinstance(response, str):
        return "text/plain; charset=utf-8", response.encode()
    return "application/json", json.dumps(response).encode()


def main(arguments: list[str]) -> None:
    """Serves until it is stopped."""
    port, function, folder = arguments
    Handler.answer = staticmethod(named(function))
    Handler.kept = Path(folder) / "requests.jsonl"
    _Server((HOST, int(port)), Handler).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
