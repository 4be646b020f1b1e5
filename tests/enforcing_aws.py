"""S3 and Secrets Manager as a role sees them: a proxy in front of the emulated AWS that denies what the role's statements don't allow, as
the emulator never does.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.forwarding_s3 import Answer, ForwardingS3
from tests.needed_permissions import Keys, Permission, listing, permissions

_SAYS = "The role's statements don't allow this"
_DENIED = f"<Error><Code>AccessDenied</Code><Message>{_SAYS}</Message></Error>".encode()
_SECRET_DENIED = json.dumps({"__type": "AccessDeniedException", "message": _SAYS}).encode()


class EnforcingAws(ForwardingS3):
    """A proxy in front of the emulated AWS; a context manager.

    Args:
        endpoint: of the emulated AWS.
        statements: of the role.
        keys: of the account.
    """

    def __init__(self, endpoint: str, statements: Iterable[Mapping[str, Any]], keys: Keys) -> None:
        super().__init__(endpoint)
        self._statements = list(statements)
        self._keys = keys
        self._lock = threading.Lock()
        self.asked: set[Permission] = set()
        self.denied: list[Permission] = []

    def handle(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        """Denies a request, or answers it as AWS does."""
        needed = permissions(handler.command, handler.path, dict(handler.headers), body, self._keys)
        if not self._may(needed):
            self.send(handler, _denied(handler))
            return
        answer = self.forward(handler, body)
        missing = answer.status == 404 and handler.command in ("GET", "HEAD")
        if missing and not self._may([listing(one) for one in needed if one.action == "s3:GetObject"]):
            answer = _denied(handler)
        self.send(handler, answer)

    def _may(self, needed: list[Permission]) -> bool:
        denied = [one for one in needed if not one.given_by(self._statements)]
        with self._lock:
            self.asked |= {*needed}
            self.denied += denied
        return not denied


def _denied(handler: BaseHTTPRequestHandler) -> Answer:
    if handler.headers.get("x-amz-target"):
        return Answer(400, [("Content-Type", "application/x-amz-json-1.1")], _SECRET_DENIED)
    return Answer(403, [("Content-Type", "application/xml")], b"" if handler.command == "HEAD" else _DENIED)
