"""Fixes of moto 5.2.5 where its behaviour differs from AWS."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any

from flask import request
from moto.amp.models import PrometheusServiceBackend, Workspace
from moto.core import serialize
from moto.iam.access_control import IAMPolicy, IAMPolicyStatement, PermissionResult
from moto.iam.policy_conditions import CONDITION_OPERATIONS
from moto.s3.exceptions import NoSuchUpload
from moto.s3.models import FakeBucket, S3Backend

from penstock.scripts.emulation import (
    access_logs,
    budgets,
    ec2_corrections,
    moto_pricing,
    neighbours,
    policy_simulator,
    storage_autoscaling,
)
from penstock.scripts.emulation.eks import service as eks
from penstock.scripts.emulation.msk import service as msk

# Without a cache, the entries of a listing are parsed again for each listing; this many take some 10 MB.
REMEMBERED_TIMES = 100_000


def apply() -> None:
    """Patch moto in this process."""
    _answer_no_such_upload()
    _heed_conditions()
    _stand_behind_tls()
    _remember_times()
    _keep_keys_of_workspaces()
    ec2_corrections.apply()
    access_logs.add()
    moto_pricing.add()
    policy_simulator.add()
    neighbours.join()
    for service in (eks, msk, budgets, storage_autoscaling):
        service.add()


def _answer_no_such_upload() -> None:
    """For a completed, aborted or unknown upload, S3 returns an error 404, and moto an error 500, which clients retry."""
    for name in ("upload_part", "upload_part_copy", "complete_multipart_upload"):
        setattr(S3Backend, name, _with_upload(getattr(S3Backend, name)))


def _with_upload(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def checked(backend: S3Backend, bucket_name: str, multipart_id: str, *rest: Any, **named: Any) -> Any:
        if multipart_id not in backend.get_bucket(bucket_name).multiparts:
            raise NoSuchUpload(upload_id=multipart_id)
        return method(backend, bucket_name, multipart_id, *rest, **named)

    return checked


def _heed_conditions() -> None:
    """A statement whose condition is not met does not apply; moto treats it as a denial or, for an unknown operator, applies it."""
    CONDITION_OPERATIONS["Bool"] = _same_truth
    # With setattr, because mypy compares the argument names of a replaced method.
    setattr(IAMPolicyStatement, "is_action_permitted", _heeding(IAMPolicyStatement.is_action_permitted))  # noqa: B010


def _same_truth(expected_value: list[str] | str, actual_value: str) -> bool:
    return str(expected_value).lower() == actual_value


def _heeding(decide: Callable[..., PermissionResult]) -> Callable[..., PermissionResult]:
    @wraps(decide)
    def heeding(
        statement: IAMPolicyStatement,
        action: str,
        resource: str = "*",
        principal: str | None = None,
        incoming_condition_values: dict[str, str] | None = None,
    ) -> PermissionResult:
        if not statement._check_conditions(incoming_condition_values):
            return PermissionResult.NEUTRAL
        return decide(statement, action, resource, principal, incoming_condition_values)

    return heeding


def _stand_behind_tls() -> None:
    """Requests on the loopback interface count as TLS, for buckets that require it; ``X-Forwarded-Proto: http`` overrides that."""
    setattr(FakeBucket, "get_permission", _permission)  # noqa: B010


def _permission(bucket: FakeBucket, action: str, resource: str) -> PermissionResult:
    if bucket.policy is None:
        return PermissionResult.NEUTRAL
    secure = request.headers.get("X-Forwarded-Proto", "https") == "https"
    values = {"aws:SecureTransport": str(secure).lower()}
    return IAMPolicy(bucket.policy.decode()).is_action_permitted(action, resource, incoming_condition_values=values)


def _remember_times() -> None:
    """moto formats and parses the timestamp of each entry of a listing, which is a third of a listing's cost."""
    serialize.parse_to_aware_datetime = lru_cache(maxsize=REMEMBERED_TIMES)(serialize.parse_to_aware_datetime)  # type: ignore[attr-defined]


def _keep_keys_of_workspaces() -> None:
    """A workspace of Amazon Managed Prometheus keeps the key that it was created with; moto drops the key."""
    create, describe = PrometheusServiceBackend.create_workspace, Workspace.to_dict

    def create_workspace(backend: PrometheusServiceBackend, alias: str, tags: dict[str, str]) -> Workspace:
        workspace = create(backend, alias, tags or {})
        vars(workspace)["kms_key_arn"] = (request.get_json(silent=True, force=True) or {}).get("kmsKeyArn")
        return workspace

    def to_dict(workspace: Workspace) -> dict[str, Any]:
        key = vars(workspace).get("kms_key_arn")
        return {**describe(workspace), **({"kmsKeyArn": key} if key else {})}

    setattr(PrometheusServiceBackend, "create_workspace", create_workspace)  # noqa: B010
    setattr(Workspace, "to_dict", to_dict)  # noqa: B010
