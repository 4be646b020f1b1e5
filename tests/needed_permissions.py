"""Which permissions AWS asks for: of a request to S3 or to Secrets Manager, with those of KMS that it takes by itself.

Source: Amazon S3 User Guide, "Required permissions for Amazon S3 API operations" and "Using server-side encryption with AWS KMS keys";
AWS Key Management Service Developer Guide, "Encryption context" of Amazon S3 and AWS Secrets Manager; the reference of HeadObject.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from tests.infra.iam_evaluation import allowed

_DELETED = re.compile(rb"<Key>([^<]+)</Key>")
_LISTING = ("delimiter", "max-keys", "continuation-token", "start-after", "encoding-type", "fetch-owner", "marker")
# Kinds of requests by which an object's key decrypts and makes data keys; an upload in parts does both.
_DECRYPTING = {"s3:GetObject": ["kms:Decrypt"], "s3:GetObjectVersion": ["kms:Decrypt"], "s3:PutObject": ["kms:GenerateDataKey"]}
_OF_PARTS = ["kms:GenerateDataKey", "kms:Decrypt"]


class Permission(NamedTuple):
    """What a request needs.

    Args:
        action: such as ``s3:GetObject``.
        resource: ARN of the bucket, the object, the secret or the key.
        conditions: condition key of IAM, such as ``s3:prefix`` -> its value.
    """

    action: str
    resource: str
    conditions: tuple[tuple[str, str], ...] = ()

    def given_by(self, statements: Iterable[Mapping[str, Any]]) -> bool:
        """Whether a role's statements allow it."""
        return allowed(statements, self.action, self.resource, dict(self.conditions))


@dataclass(frozen=True)
class Keys:
    """By which KMS keys the account encrypts.

    Args:
        buckets: ARN of a bucket with a bucket key -> ARN of its KMS key.
        secrets: ARN of a secret -> ARN of its KMS key; one that is missing has AWS's own, which asks nobody.
        region: of all of them.
    """

    buckets: Mapping[str, str]
    secrets: Mapping[str, str]
    region: str

    def of_object(self, action: str, arn: str, *, in_parts: bool) -> list[Permission]:
        """Those for the data key of an object."""
        bucket = arn.partition("/")[0]
        if (key := self.buckets.get(bucket)) is None or action not in _DECRYPTING:
            return []
        # With a bucket key, the context is the bucket.
        context = (("kms:EncryptionContext:aws:s3:arn", bucket), ("kms:ViaService", f"s3.{self.region}.amazonaws.com"))
        return [Permission(used, key, context) for used in (_OF_PARTS if in_parts else _DECRYPTING[action])]

    def of_secret(self, arn: str) -> list[Permission]:
        """Those for reading a secret."""
        if (key := self.secrets.get(arn)) is None:
            return []
        context = (("kms:EncryptionContext:SecretARN", arn), ("kms:ViaService", f"secretsmanager.{self.region}.amazonaws.com"))
        return [Permission("kms:Decrypt", key, context)]


def permissions(method: str, target: str, headers: Mapping[str, str], body: bytes, keys: Keys) -> list[Permission]:
    """What a request needs, by its method and address, path-style.

    Args:
        method: of HTTP.
        target: path and query.
        headers: of the request.
        body: of the request.
        keys: of the account.
    """
    known = {name.lower(): value for name, value in headers.items()}
    if service := known.get("x-amz-target"):
        return _of_secret(service, body, keys)
    address = urlsplit(target)
    query = parse_qs(address.query, keep_blank_values=True)
    bucket, _, key = unquote(address.path).removeprefix("/").partition("/")
    arn = f"arn:aws:s3:::{bucket}"
    if not key:
        return _of_bucket(method, arn, query, body)
    needed = _of_object(method, f"{arn}/{key}", query, keys)
    if source := known.get("x-amz-copy-source"):
        needed += _of_object("GET", f"arn:aws:s3:::{unquote(source).removeprefix('/').partition('?')[0]}", {}, keys)
    return needed


def listing(get: Permission) -> Permission:
    """What S3 also asks before it says that an object is missing."""
    bucket, _, key = get.resource.partition("/")
    return _list(bucket, key)


def _list(bucket: str, prefix: str, action: str = "s3:ListBucket") -> Permission:
    return Permission(action, bucket, (("s3:prefix", prefix),))


def _of_secret(service: str, body: bytes, keys: Keys) -> list[Permission]:
    assert service == "secretsmanager.GetSecretValue", f"{service}: say here which permissions it takes"
    arn = str(json.loads(body)["SecretId"])
    return [Permission("secretsmanager:GetSecretValue", arn), *keys.of_secret(arn)]


def _of_bucket(method: str, arn: str, query: Mapping[str, list[str]], body: bytes) -> list[Permission]:
    if method == "POST" and "delete" in query:
        return [Permission("s3:DeleteObject", f"{arn}/{key.decode()}") for key in _DELETED.findall(body)]
    if method == "GET" and "uploads" in query:
        return [Permission("s3:ListBucketMultipartUploads", arn)]
    if method == "GET" and "versions" in query:
        return [_list(arn, query.get("prefix", [""])[0], "s3:ListBucketVersions")]
    if method == "GET" and not query.keys() - {"list-type", "prefix", *_LISTING}:
        return [_list(arn, query.get("prefix", [""])[0])]
    if method == "HEAD":
        return [Permission("s3:ListBucket", arn)]
    raise AssertionError(f"{method} of {arn} with {sorted(query)}: say here which permission S3 asks for")


def _of_object(method: str, arn: str, query: Mapping[str, list[str]], keys: Keys) -> list[Permission]:
    action = _action(method, query)
    # HEAD has no content to decrypt.
    used = [] if method == "HEAD" else keys.of_object(action, arn, in_parts="uploadId" in query or "uploads" in query)
    return [Permission(action, arn), *used]


def _action(method: str, query: Mapping[str, list[str]]) -> str:
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
