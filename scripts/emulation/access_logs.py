"""S3 server access logs: the bucket policy is evaluated as on S3, but no logs are delivered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from moto.s3.models import FakeBucket, S3Backend
from moto.s3.utils import LOGGING_SERVICE_PRINCIPAL

_ACTIONS = {"s3:*", "s3:Put*", "s3:PutObject"}


def add() -> None:
    """Patch moto in this process.

    moto fails on a policy whose principal is ``*`` or whose resources are a list, which is common. It also writes a log object with each
    request, whereas S3 delivers logs within a few hours, when a run here is over.
    """
    setattr(FakeBucket, "_log_permissions_enabled_policy", staticmethod(_may_deliver))  # noqa: B010
    setattr(S3Backend, "log_incoming_request", lambda backend, request, bucket_name: None)  # noqa: B010


def _may_deliver(target_bucket: FakeBucket, target_prefix: str | None) -> bool:
    if not target_bucket.policy:
        return False
    statements = json.loads(target_bucket.policy.decode())["Statement"]
    bucket = f"arn:{target_bucket.partition}:s3:::{target_bucket.name}"
    places = {f"{bucket}/*", f"{bucket}/{target_prefix or ''}*"}
    return any(_allows(statement, places) for statement in statements)


def _allows(statement: Mapping[str, Any], places: set[str]) -> bool:
    principal = statement.get("Principal", {})
    services = _list(principal.get("Service", [])) if isinstance(principal, Mapping) else []
    return (
        statement.get("Effect") == "Allow"
        and LOGGING_SERVICE_PRINCIPAL in services
        and bool(_ACTIONS & set(_list(statement.get("Action", []))))
        and bool(places & set(_list(statement.get("Resource", []))))
    )


def _list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)
