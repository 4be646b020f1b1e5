"""A local HTTP endpoint whose responses come from a function."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.scripts.local.servers.function_server import FunctionServer
from penstock.scripts.local.servers.local_server import HOST


@dataclass(frozen=True)
class Request:
    """A request that the endpoint served.

    Args:
        method: such as ``POST``.
        path: with its query.
        headers: names in lower case.
        body: as text.
        status: of the response.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: str
    status: int

    def json(self) -> Any:
        """The body, parsed as JSON."""
        return json.loads(self.body)


class HttpEndpoint(FunctionServer):
    """A running endpoint; its function takes method, path, headers and body (bytes) and returns a status and a body.

    The body may be bytes, text, or JSON-serialisable. An exception of the function is a response with status 500.
    """

    kind = "http"

    @property
    def url(self) -> str:
        """``http://127.0.0.1:port``."""
        return f"http://{HOST}:{self.port}"

    def requests(self) -> list[Request]:
        """The requests served so far, in the order of the responses."""
        kept = self.folder / "requests.jsonl"
        return [Request(**json.loads(line)) for line in kept.read_text(encoding="utf-8").splitlines()] if kept.exists() else []

    @property
    def _module(self) -> str:
        return "penstock.scripts.local.servers.http_program"
