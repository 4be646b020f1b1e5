"""Where the sinks of a preview lead: an endpoint on loopback that writes rows into a folder, for as long as the preview runs."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self


class Collector:
    """The endpoint.

    Args:
        folder: an existing folder for the rows.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # Other processes of this machine reach the port too.
        self._secret = secrets.token_hex(16)
        self._lock = threading.Lock()
        self._keys: set[str] = set()
        self._files: dict[str, Path] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def url(self, run: str, sink: str) -> str:
        """The URL that takes the rows of a sink of a run."""
        path = f"/{self._secret}/{run}/{sink}"
        self._files[path] = self._folder / f"{run}-{sink}.jsonl"
        return f"http://127.0.0.1:{self._server.server_address[1]}{path}"

    def rows(self, run: str, sink: str) -> Iterator[dict[str, Any]]:
        """The rows of a sink of a run, in the order of its micro-batches."""
        file = self._folder / f"{run}-{sink}.jsonl"
        if not file.exists():
            return
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                yield from json.loads(line)

    def take(self, path: str, key: str, body: bytes) -> bool:
        """Takes an array of rows, once; False for a path that is no sink's."""
        file = self._files.get(path)
        if file is None:
            return False
        with self._lock:
            if key not in self._keys:
                with file.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(_rows(body)) + "\n")
                self._keys.add(key)
        return True


def _rows(body: bytes) -> list[dict[str, Any]]:
    """The rows of an array. Rows with only the columns ``key`` and ``value`` arrive as their values, which need not be JSON."""
    text = body.decode("utf-8", "replace")
    try:
        return [row if isinstance(row, dict) else {"value": row} for row in json.loads(text)]
    except ValueError:
        return [{"value": text}]


def _handler(collector: Collector) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            taken = collector.take(self.path, self.headers.get("Idempotency-Key", ""), body)
            self.send_response(204 if taken else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is logged."""

    return Handler
