"""What EKS holds in one account and region, and what all its operations ask of it."""

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
    """A cluster and all that lies in it; the descriptions are as the API gives them.

    Args:
        place: where it is.
        description: the cluster's own.
        node_groups: by name.
        addons: by name.
        access_entries: by the principal's ARN.
        access_policies: by the principal's ARN, then by the policy's.
        associations: pod identity's, by id.
        updates: by id.
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
        """The ARN of something in the cluster: ``arn:aws:eks:region:account:kind/cluster/rest``."""
        at = self.place
        return f"arn:{at.partition}:eks:{at.region}:{at.account}:{'/'.join((kind, self.name, *rest))}"

    def tagged(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """All that has tags: its ARN and its description."""
        yield self.description["arn"], self.description
        for things, arn in (
            (self.node_groups, "nodegroupArn"),
            (self.addons, "addonArn"),
            (self.access_entries, "accessEntryArn"),
            (self.associations, "associationArn"),
        ):
            yield from ((thing[arn], thing) for thing in things.values())

    def note_update(self, kind: str, params: Mapping[str, Any]) -> Answer:
        """Records an update that is done as soon as it is asked for, and answers it."""
        listed = [{"type": name, "value": str(value)} for name, value in params.items()]
        update = {"id": str(uuid.uuid4()), "status": "Successful", "type": kind, "params": listed, "createdAt": now(), "errors": []}
        self.updates[str(update["id"])] = update
        return {"update": update}


@dataclass
class Eks:
    """EKS in one account and region.

    Args:
        place: the account and region.
        clusters: by name.
    """

    place: Place
    clusters: dict[str, Cluster] = field(default_factory=dict)

    def cluster(self, asked: Asked) -> Cluster:
        """The cluster that a request names.

        Raises:
            Refused: ResourceNotFoundException.
        """
        name: str = asked.get("clusterName") or asked["name"]
        if name not in self.clusters:
            raise not_found(f"No cluster found for name: {name}.", clusterName=name)
        return self.clusters[name]


def now() -> datetime:
    """The time; of no moment to any rule here."""
    return datetime.now(UTC)


def new_id(length: int) -> str:
    """Random digits and small letters."""
    return base64.b32encode(secrets.token_bytes(length)).decode().lower()[:length]


def not_found(message: str, **members: str) -> Refused:
    """The error of what is not there."""
    return Refused("ResourceNotFoundException", message, **members)


def in_use(message: str, **members: str) -> Refused:
    """The error of what is there already, or is held by something."""
    return Refused("ResourceInUseException", message, **members)


def invalid(message: str, **members: str) -> Refused:
    """The error of a parameter that can't be."""
    return Refused("InvalidParameterException", message, **members)


def invalid_request(message: str, **members: str) -> Refused:
    """The error of a request that can't be in this state."""
    return Refused("InvalidRequestException", message, **members)


def page(things: Sequence[Any], asked: Asked, key: str) -> dict[str, Any]:
    """One page of a list.

    Args:
        things: the whole list.
        asked: the request, with ``maxResults`` and ``nextToken`` if it has them.
        key: the answer's name of the list.

    Returns:
        The page, and ``nextToken`` where more follows.
    """
    start = int(asked.get("nextToken") or 0)
    end = start + int(asked.get("maxResults") or PAGE)
    more = {"nextToken": str(end)} if end < len(things) else {}
    return {key: list(things[start:end]), **more}


def need_role(place: Place, arn: str, *, service: str, actions: Sequence[str] = ("sts:AssumeRole",)) -> None:
    """Refuses a role that is not there, or that the service may not take.

    Args:
        place: where the request came.
        arn: the role's ARN.
        service: the principal that must be trusted, as ``eks.amazonaws.com``.
        actions: what the trust policy must allow it.

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
