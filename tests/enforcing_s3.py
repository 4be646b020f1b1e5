"""S3 as a role sees it: a proxy in front of an emulated S3 that denies what the role's statements don't allow, as the emulator never does.

Source: Amazon S3 User Guide, "Required permissions for Amazon S3 API operations", and the reference of HeadObject: of an object that is
missing S3 says so only to those who may list it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from tests.forwarding_s3 import Answer, ForwardingS3
from tests.infra.iam_evaluation import allowed

_DENIED = b"<Error><Code>AccessDenied</Code><Message>The role's statements don't allow this</Message></Error>"
_DELETED = re.compile(rb"<Key>([^<]+)</Key>")


class Permission(NamedTuple):
    """What a request needs.

    Args:
        action: such as ``s3:GetObject``.
        resource: ARN of the bucket or object.
        prefix: of a listing, in IAM the condition key ``s3:prefix``.
    """

    action: str
    resource: str
    prefix: str | None = None

    def given_by(self, statements: Iterable[Mapping[str, Any]]) -> bool:
        """Whether a role's statements allow it."""
        return allowed(statements, self.action, self.resource, {} if self.prefix is None else {"s3:prefix": self.prefix})


class EnforcingS3(ForwardingS3):
    """A proxy in front of S3; a context manager.

    Args:
        endpoint: of S3.
        statements: of the role.
    """

    def __init__(self, endpoint: str, statements: Iterable[Mapping[str, Any]]) -> None:
        super().__init__(endpoint)
        self._statements = list(statements)
        self._lock = threading.Lock()
        self.asked: set[Permission] = set()
        self.denied: list[Permission] = []

    def handle(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        """Denies a request, or answers it as S3 does."""
        needed = permissions(handler.command, handler.path, dict(handler.headers), body)
        if not self._may(needed):
            self.send(handler, _denied(handler))
            return
        answer = self.forward(handler, body)
        missing = answer.status == 404 and handler.command in ("GET", "HEAD")
        if missing and not self._may([_listing(one) for one in needed if one.action == "s3:GetObject"]):
            answer = _denied(handler)
        self.send(handler, answer)

    def _may(self, needed: list[Permission]) -> bool:
        denied = [one for one in needed if not one.given_by(self._statements)]
        with self._lock:
            self.asked |= {*needed}
            self.denied += denied
        return not denied


def permissions(method: str, target: str, headers: Mapping[str, str], body: bytes) -> list[Permission]:
    """What a request needs, by its method and address, path-style."""
    address = urlsplit(target)
    query = parse_qs(address.query, keep_blank_values=True)
    bucket, _, key = unquote(address.path).removeprefix("/").partition("/")
    arn = f"arn:aws:s3:::{bucket}"
    if not key:
        return _of_bucket(method, arn, query, body)
    needed = [Permission(_of_object(method, query), f"{arn}/{key}")]
    if source := {name.lower(): value for name, value in headers.items()}.get("x-amz-copy-source"):
        needed.append(Permission("s3:GetObject", f"arn:aws:s3:::{unquote(source).removeprefix('/').partition('?')[0]}"))
    return needed


def _of_bucket(method: str, arn: str, query: Mapping[str, list[str]], body: bytes) -> list[Permission]:
    if method == "POST" and "delete" in query:
        return [Permission("s3:DeleteObject", f"{arn}/{key.decode()}") for key in _DELETED.findall(body)]
    if method == "GET" and "uploads" in query:
        return [Permission("s3:ListBucketMultipartUploads", arn)]
    if method == "GET" and "versions" in query:
        return [Permission("s3:ListBucketVersions", arn, query.get("prefix", [""])[0])]
    if method == "GET" and not query.keys() - {"list-type", "prefix", *_LISTING}:
        return [Permission("s3:ListBucket", arn, query.get("prefix", [""])[0])]
    if method == "HEAD":
        return [Permission("s3:ListBucket", arn)]
    raise AssertionError(f"{method} of {arn} with {sorted(query)}: say here which permission S3 asks for")


_LISTING = ("delimiter", "max-keys", "continuation-token", "start-after", "encoding-type", "fetch-owner", "marker")


def _of_object(method: str, query: Mapping[str, list[str]]) -> str:
    match method:
        case "GET" if "uploadId" in query:
            return "s3:ListMultipartUploadParts"
        case "GET" | "HEAD":
            return "s3:GetObjectVersion" if "versionId" in query else "s3:GetObject"
        case "DELETE" if "uploadId" in query:
            return "s3:AbortMultipartUpload"
        case "DELETE":
            return "s3:DeleteObjectVersion" if "versionId" in query else "s3:DeleteObject"
    # POST begins and completes a multipart upload.
    return "s3:PutObject"


def _listing(get: Permission) -> Permission:
    bucket, _, key = get.resource.partition("/")
    return Permission("s3:ListBucket", bucket, key)


def _denied(handler: BaseHTTPRequestHandler) -> Answer:
    return Answer(403, [("Content-Type", "application/xml")], b"" if handler.command == "HEAD" else _DENIED)
