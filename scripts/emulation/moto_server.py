"""moto behind an HTTP server with persistent connections: ``python -m penstock.scripts.emulation.moto_server PORT``.

`penstock.scripts.emulation.emulated_aws` starts it.

moto's own server closes every connection after one request, sometimes sends ``100 Continue`` twice, and runs requests of several
connections concurrently on data that is not thread-safe: two conditional writes of one key can both succeed. Spark's checkpoints make
hundreds of small requests per micro-batch over a few connections, and a sink that publishes by a conditional write must fail where it
would fail on S3. So this server reads a request completely, passes requests to moto one at a time, and sends each response in one piece.
"""

from __future__ import annotations

import io
import logging
import os
import signal
import socket
import sys
import threading
from types import FrameType
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import ThreadedWSGIServer

from penstock.scripts.emulation import moto_corrections

HOST = "127.0.0.1"
# The parent searches the log for this text, followed by the port.
READY = "penstock emulated aws ready on port"
PORT_IN_USE = "penstock emulated aws cannot have port"

_log = logging.getLogger(__name__)
# A request's state is local to its connection's thread; the data is shared.
_one_at_a_time = threading.Lock()


class Dispatcher(DomainDispatcherApplication):
    """Cache of moto's choice of the service for a request: moto lists one of its folders for each request, half of the cost of a GET."""

    def __init__(self) -> None:
        super().__init__(create_backend_app)
        self._backends: dict[str | None, Any] = {}

    def get_backend_for_host(self, host: str | None) -> Any:
        """Return the service of a host name, or None."""
        if host not in self._backends:
            self._backends[host] = super().get_backend_for_host(host)
        return self._backends[host]


class KeepAliveHandler(MotoRequestHandler):
    """One connection: serves requests until the client closes it."""

    protocol_version = "HTTP/1.1"
    # Head and body of a response in at most one packet each: with Nagle's algorithm, a small response would wait for the client's delayed
    # ACK.
    disable_nagle_algorithm = True
    wbufsize = -1

    def handle_expect_100(self) -> bool:
        """Send ``100 Continue``, once and immediately, to a client that expects it."""
        super().handle_expect_100()
        self.wfile.flush()
        return True

    def run_wsgi(self) -> None:
        """Handle one request."""
        environ = self.make_environ()
        self.environ = environ
        # Read completely before moto handles it: what moto leaves unread would be parsed as the next request.
        body_in = self._body(environ)
        if body_in is None:
            self.close_connection = True
            return
        environ["wsgi.input"] = io.BytesIO(body_in)
        status, headers, body = self._answer(environ)
        self._send(status, headers, body)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log nothing: a line per request costs more than some requests."""

    def _body(self, environ: dict[str, Any]) -> bytes | None:
        """Return the request's body; None if the client disconnected before its end, because S3 never stores partial objects."""
        if environ.get("wsgi.input_terminated"):
            try:
                body: bytes = environ["wsgi.input"].read()
            except OSError:
                return None
            environ["CONTENT_LENGTH"] = str(len(body))
            return body
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = self.rfile.read(length)
        return body if len(body) == length else None

    def _answer(self, environ: dict[str, Any]) -> tuple[str, list[tuple[str, str]], bytes]:
        head: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: object = None) -> Any:
            head.append((status, headers))
            return lambda data: None

        try:
            with _one_at_a_time:
                parts = self.server.app(environ, start_response)
                body = b"".join(parts)
                if hasattr(parts, "close"):
                    parts.close()
        except Exception:
            # If moto raises, the client gets a response and the log the traceback.
            _log.exception("%s %s", self.command, self.path)
            return "500 Internal Server Error", [], b""
        status, headers = head[-1]
        return status, headers, body

    def _send(self, status: str, headers: list[tuple[str, str]], body: bytes) -> None:
        code, _, reason = status.partition(" ")
        self.send_response_only(int(code), reason)
        named = set()
        for name, value in headers:
            self.send_header(name, value)
            named.add(name.lower())
        if "content-length" not in named and code not in ("204", "304"):
            self.send_header("Content-Length", str(len(body)))
        if "date" not in named:
            self.send_header("Date", self.date_time_string())
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()


class Server(ThreadedWSGIServer):
    """One thread per connection; the threads end with the process."""

    daemon_threads = True
    request_queue_size = 128


def main() -> int:
    """Serve on the port in the first argument, 0 for a free one, until SIGTERM.

    Returns:
        1 if the port is not available.
    """
    port = int(sys.argv[1])
    logging.basicConfig(level=logging.WARNING)
    moto_corrections.apply()
    try:
        server = Server(HOST, port, Dispatcher(), handler=KeepAliveHandler, fd=_listening(port))
    except OSError as error:
        print(f"{PORT_IN_USE} {port}: {error.strerror}", flush=True)
        return 1
    # moto calls itself on this port for a few services.
    os.environ["MOTO_PORT"] = str(server.port)
    signal.signal(signal.SIGTERM, _leave)
    print(f"{READY} {server.port}", flush=True)
    server.serve_forever()
    return 0


def _listening(port: int) -> int:
    """The socket is bound here: for a port in use, werkzeug would exit with a page of advice."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(Server.request_queue_size)
        return listener.detach()


def _leave(number: int, frame: FrameType | None) -> None:
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
