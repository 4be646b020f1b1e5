"""IAM policy documents and their statements."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Statement = Mapping[str, Any]
Condition = Mapping[str, Mapping[str, Any]]

# Source: IAM User Guide, "IAM JSON policy elements: Version".
VERSION = "2012-10-17"


def allow(sid: str, actions: Sequence[str], resources: Sequence[str], condition: Condition | None = None) -> Statement:
    """An allow statement of an identity-based policy.

    Args:
        sid: letters and digits, unique in its policy.
        actions: such as ``s3:GetObject``.
        resources: ARNs.
        condition: operator -> key -> value or values.
    """
    return _statement("Allow", sid, actions, condition, Resource=list(resources))


def deny(
    sid: str, actions: Sequence[str], resources: Sequence[str], condition: Condition | None = None, principal: str | None = "*"
) -> Statement:
    """A deny statement of a resource-based policy; without a principal, of an identity-based policy.

    Args:
        sid: as in `allow`.
        actions: as in `allow`.
        resources: as in `allow`.
        condition: as in `allow`.
        principal: to deny.
    """
    whom = {} if principal is None else {"Principal": principal}
    return _statement("Deny", sid, actions, condition, Resource=list(resources), **whom)


def allow_service(
    sid: str, service: str, actions: Sequence[str], resources: Sequence[str], condition: Condition | None = None
) -> Statement:
    """An allow statement of a resource-based policy for an AWS service.

    Args:
        sid: as in `allow`.
        service: such as ``events.amazonaws.com``.
        actions: as in `allow`.
        resources: as in `allow`.
        condition: as in `allow`; without one, the service may act for any account.
    """
    return _statement("Allow", sid, actions, condition, Resource=list(resources), Principal={"Service": service})


def trust(service: str, condition: Condition | None = None, actions: Sequence[str] = ("sts:AssumeRole",)) -> Statement:
    """The statement of a role's trust policy that lets a service assume the role.

    Args:
        service: such as ``pods.eks.amazonaws.com``.
        condition: as in `allow`.
        actions: of STS.
    """
    return _statement("Allow", "Trust", actions, condition, Principal={"Service": service})


def tls_only(actions: str, resources: Sequence[str]) -> Statement:
    """The statement of a resource-based policy that denies requests without TLS.

    Args:
        actions: of the service, such as ``s3:*``.
        resources: ARNs.
    """
    return deny("TlsOnly", [actions], resources, {"Bool": {"aws:SecureTransport": "false"}})


def document(statements: Iterable[Statement]) -> str:
    """A policy document as JSON."""
    return json.dumps({"Version": VERSION, "Statement": [dict(statement) for statement in statements]})


def _statement(effect: str, sid: str, actions: Sequence[str], condition: Condition | None, **rest: Any) -> Statement:
    conditions = {} if condition is None else {"Condition": condition}
    return {"Sid": sid, "Effect": effect, "Action": list(actions), **rest, **conditions}
