"""IAM policies as documents: who may do what, on what, on which conditions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Statement = Mapping[str, Any]
Condition = Mapping[str, Mapping[str, Any]]

# Source: IAM User Guide, "IAM JSON policy elements: Version".
VERSION = "2012-10-17"


def allow(sid: str, actions: Sequence[str], resources: Sequence[str], condition: Condition | None = None) -> Statement:
    """A statement of an identity's policy that allows.

    Args:
        sid: letters and digits, one of a kind in its policy.
        actions: as ``s3:GetObject``.
        resources: ARNs.
        condition: operator -> key -> value or values.
    """
    return _statement("Allow", sid, actions, condition, Resource=list(resources))


def deny(
    sid: str, actions: Sequence[str], resources: Sequence[str], condition: Condition | None = None, principal: str | None = "*"
) -> Statement:
    """A statement of a resource's policy that denies; without a principal, of an identity's.

    Args:
        sid: as of `allow`.
        actions: as of `allow`.
        resources: as of `allow`.
        condition: as of `allow`.
        principal: whom.
    """
    whom = {} if principal is None else {"Principal": principal}
    return _statement("Deny", sid, actions, condition, Resource=list(resources), **whom)


def allow_service(
    sid: str, service: str, actions: Sequence[str], resources: Sequence[str], condition: Condition | None = None
) -> Statement:
    """A statement of a resource's policy that allows an AWS service.

    Args:
        sid: as of `allow`.
        service: as ``events.amazonaws.com``.
        actions: as of `allow`.
        resources: as of `allow`.
        condition: as of `allow`; without one any account's use of the service is allowed.
    """
    return _statement("Allow", sid, actions, condition, Resource=list(resources), Principal={"Service": service})


def trust(service: str, condition: Condition | None = None, actions: Sequence[str] = ("sts:AssumeRole",)) -> Statement:
    """The statement of a role's trust policy that lets a service take the role.

    Args:
        service: as ``pods.eks.amazonaws.com``.
        condition: as of `allow`.
        actions: of STS.
    """
    return _statement("Allow", "Trust", actions, condition, Principal={"Service": service})


def tls_only(actions: str, resources: Sequence[str]) -> Statement:
    """The statement of a resource's policy that refuses what comes without TLS.

    Args:
        actions: of the service, as ``s3:*``.
        resources: ARNs.
    """
    return deny("TlsOnly", [actions], resources, {"Bool": {"aws:SecureTransport": "false"}})


def document(statements: Iterable[Statement]) -> str:
    """A policy document as JSON."""
    return json.dumps({"Version": VERSION, "Statement": [dict(statement) for statement in statements]})


def _statement(effect: str, sid: str, actions: Sequence[str], condition: Condition | None, **rest: Any) -> Statement:
    conditions = {} if condition is None else {"Condition": condition}
    return {"Sid": sid, "Effect": effect, "Action": list(actions), **rest, **conditions}
