"""State of EKS in one account and region, and helpers of its operations."""

from __future__ import annotations

import base64
import secrets
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from penstock.scripts.emulation import neighbours
from penstock.scripts.emulation.checked_service import Answer, Asked, Place, Refused

# Source: EKS's API reference, maxResults of the List operations.
PAGE = 100


@dataclass
class Cluster:
    """A cluster and everything in it; descriptions are in the API's format.

    Args:
        place: its account and region.
        description: its own description.
        node_groups: node groups by name.
        addons: add-ons by name.
        access_entries: access entries by the principal's ARN.
        access_policies: access policies by the principal's ARN, then by the policy's.
        associations: pod identity associations by id.
        updates: updates by id.
    """

    place: Place
    description: dict[str, Any]
    node_groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    addons: dict[str, dict[str, Any]] = field(default_factory=dict)
    access_entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    access_policies: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    associations: dict[str, dict[str, Any]] = field(default_factory=dict)
    updates: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The cluster's name."""
        name: str = self.description["name"]
        return name

    def arn(self, kind: str, *rest: str) -> str:
        """ARN of an object in the cluster: ``arn:aws:eks:region:account:kind/cluster/rest``."""
        at = self.place
        return f"arn:{at.partition}:eks:{at.region}:{at.account}:{'/'.join((kind, self.name, *rest))}"

    def tagged(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """ARN and description of each object with tags."""
        yield self.description["arn"], self.description
        for things, arn in (
            (self.node_groups, "nodegroupArn"),
            (self.addons, "addonArn"),
            (self.access_entries, "accessEntryArn"),
            (self.associations, "associationArn"),
        ):
            yield from ((thing[arn], thing) for thing in things.values())

    def note_update(self, kind: str, params: Mapping[str, Any]) -> Answer:
        """Record an update, which completes immediately, and return it."""
        listed = [{"type": name, "value": str(value)} for name, value in params.items()]
        update = {"id": str(uuid.uuid4()), "status": "Successful", "type": kind, "params": listed, "createdAt": now(), "errors": []}
        self.updates[str(update["id"])] = update
        return {"update": update}


@dataclass
class Eks:
    """EKS in one account and region.

    Args:
        place: the account and region.
        clusters: clusters by name.
    """

    place: Place
    clusters: dict[str, Cluster] = field(default_factory=dict)

    def cluster(self, asked: Asked) -> Cluster:
        """Return the cluster that a request names.

        Raises:
            Refused: ResourceNotFoundException.
        """
        name: str = asked.get("clusterName") or asked["name"]
        if name not in self.clusters:
            raise not_found(f"No cluster found for name: {name}.", clusterName=name)
        return self.clusters[name]


def now() -> datetime:
    """The current time; no rule here depends on it."""
    return datetime.now(UTC)


def new_id(length: int) -> str:
    """Random digits and lowercase letters."""
    return base64.b32encode(secrets.token_bytes(length)).decode().lower()[:length]


def not_found(message: str, **members: str) -> Refused:
    """The error for a missing resource."""
    return Refused("ResourceNotFoundException", message, **members)


def in_use(message: str, **members: str) -> Refused:
    """The error for a resource that already exists or is in use."""
    return Refused("ResourceInUseException", message, **members)


def invalid(message: str, **members: str) -> Refused:
    """The error for an invalid parameter."""
    return Refused("InvalidParameterException", message, **members)


def invalid_request(message: str, **members: str) -> Refused:
    """The error for a request that is invalid in the current state."""
    return Refused("InvalidRequestException", message, **members)


def page(things: Sequence[Any], asked: Asked, key: str) -> dict[str, Any]:
    """Return one page of a list.

    Args:
        things: the complete list.
        asked: the request, optionally with ``maxResults`` and ``nextToken``.
        key: name of the list in the response.

    Returns:
        The page, with ``nextToken`` unless it is the last.
    """
    start = int(asked.get("nextToken") or 0)
    end = start + int(asked.get("maxResults") or PAGE)
    more = {"nextToken": str(end)} if end < len(things) else {}
    return {key: list(things[start:end]), **more}


def need_role(place: Place, arn: str, *, service: str, actions: Sequence[str] = ("sts:AssumeRole",)) -> None:
    """Check that a role exists and that the service may assume it.

    Args:
        place: account and region of the request.
        arn: the role's ARN.
        service: the service principal that must be trusted, such as ``eks.amazonaws.com``.
        actions: actions that the trust policy must allow.

    Raises:
        Refused: InvalidParameterException.
    """
    trust = neighbours.trust_policy(place, arn)
    if trust is None:
        raise invalid(f"Role with arn: {arn}, could not be assumed because it does not exist or the trusted entity is not correct")
    allowed = {action for statement in _listed(trust.get("Statement")) for action in _trusted_actions(statement, service)}
    if missing := [action for action in actions if action not in allowed and "sts:*" not in allowed]:
        raise invalid(f"The trust policy of {arn} must allow {service} {', '.join(missing)}")


def _trusted_actions(statement: Mapping[str, Any], service: str) -> list[Any]:
    principal = statement.get("Principal", {})
    services = _listed(principal.get("Service")) if isinstance(principal, Mapping) else []
    return _listed(statement.get("Action")) if statement.get("Effect") == "Allow" and service in services else []


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]
