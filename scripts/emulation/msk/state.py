"""State of MSK in one account and region, and helpers of its operations."""

from __future__ import annotations

import secrets
import string
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from penstock.scripts.emulation.checked_service import Asked, Place, Refused

# Source: MSK's developer guide, "Supported Apache Kafka versions"; oldest first.
KAFKA_VERSIONS = ("3.6.0", "3.7.x", "3.7.x.kraft", "3.8.x", "3.8.x.kraft", "3.9.x", "3.9.x.kraft", "4.0.x.kraft", "4.1.x.kraft")
PAGE = 100
PROVISIONED, SERVERLESS = "PROVISIONED", "SERVERLESS"


@dataclass
class Configuration:
    """A configuration of brokers.

    Args:
        arn: its ARN.
        name: its name.
        since: its creation time.
        kafka_versions: its Kafka versions; empty for any.
        revisions: its revisions, oldest first, each with properties, description and time.
    """

    arn: str
    name: str
    since: datetime
    kafka_versions: tuple[str, ...]
    revisions: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Cluster:
    """A cluster.

    Args:
        place: its account and region.
        name: its name.
        arn: its ARN.
        kind: PROVISIONED or SERVERLESS.
        tags: its tags.
        about: the type-specific part of the API's description.
        since: its creation time.
        version: version of its description; changed by each update.
        policy: its resource policy, and that policy's version.
        operations: its operations, by ARN.
        late: topic -> its next description, which is the one from before its last change; None if it did not exist.
    """

    place: Place
    name: str
    arn: str
    kind: str
    tags: dict[str, str]
    about: dict[str, Any]
    since: datetime
    version: str
    policy: tuple[str, str] | None = None
    operations: dict[str, dict[str, Any]] = field(default_factory=dict)
    late: dict[str, dict[str, Any] | None] = field(default_factory=dict)

    def change(self, kind: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, str]:
        """Record an update, which completes immediately.

        Args:
            kind: type of the operation, such as ``UPDATE_BROKER_COUNT``.
            before: the previous settings, as MutableClusterInfo.
            after: the new settings.

        Returns:
            The response to the request: the ARNs.
        """
        self.version = new_version()
        _, _, path = self.arn.partition(":cluster/")
        at = self.place
        arn = f"arn:{at.partition}:kafka:{at.region}:{at.account}:cluster-operation/{path}/{uuid.uuid4()}"
        self.operations[arn] = {
            "ClusterArn": self.arn,
            "CreationTime": now(),
            "EndTime": now(),
            "OperationArn": arn,
            "OperationState": "UPDATE_COMPLETE",
            "OperationType": kind,
            "OperationSteps": [],
            "SourceClusterInfo": dict(before),
            "TargetClusterInfo": dict(after),
        }
        return {"ClusterArn": self.arn, "ClusterOperationArn": arn}


@dataclass
class Msk:
    """MSK in one account and region.

    Args:
        place: the account and region.
        clusters: clusters by ARN.
        configurations: configurations by ARN.
    """

    place: Place
    clusters: dict[str, Cluster] = field(default_factory=dict)
    configurations: dict[str, Configuration] = field(default_factory=dict)

    def cluster(self, asked: Asked) -> Cluster:
        """Return the cluster that a request names.

        Raises:
            Refused: NotFoundException.
        """
        arn = asked["ClusterArn"]
        if arn not in self.clusters:
            raise not_found(f"Cluster not found: {arn}")
        return self.clusters[arn]

    def provisioned(self, asked: Asked) -> Cluster:
        """Return the provisioned cluster that a request names; its version must match the request's.

        Raises:
            Refused: NotFoundException, BadRequestException.
        """
        cluster = self.cluster(asked)
        if cluster.kind != PROVISIONED:
            raise bad_request("This operation cannot be performed on serverless clusters.", "clusterArn")
        if "CurrentVersion" in asked and asked["CurrentVersion"] != cluster.version:
            message = f"The cluster has the version {cluster.version}, not {asked['CurrentVersion']}: it has been changed since"
            raise bad_request(message, "currentVersion")
        return cluster

    def configuration(self, arn: str, revision: int | None = None) -> Configuration:
        """Return a configuration; the revision, if any, must exist.

        Raises:
            Refused: BadRequestException, NotFoundException.
        """
        configuration = self.configurations.get(arn)
        if configuration is None:
            # Terraform's provider detects a deleted configuration by this text.
            raise bad_request(f"Configuration ARN does not exist: {arn}", "arn")
        if revision is not None and not 1 <= revision <= len(configuration.revisions):
            raise not_found(f"Configuration {arn} has no revision {revision}")
        return configuration

    def tagged(self) -> Iterator[tuple[str, dict[str, str]]]:
        """ARN and tags of each object with tags."""
        yield from ((cluster.arn, cluster.tags) for cluster in self.clusters.values())


def now() -> datetime:
    """The current time; no rule here depends on it."""
    return datetime.now(UTC)


def new_version() -> str:
    """A version in MSK's format."""
    return "K" + "".join(secrets.choice(string.ascii_uppercase + string.digits) for _ in range(13))


def new_arn(place: Place, kind: str, name: str) -> str:
    """ARN of a cluster or configuration, with MSK's random suffix."""
    return f"arn:{place.partition}:kafka:{place.region}:{place.account}:{kind}/{name}/{uuid.uuid4()}-{secrets.randbelow(24) + 2}"


def bad_request(message: str, parameter: str | None = None) -> Refused:
    """The error for an invalid request."""
    return Refused("BadRequestException", message, **({"InvalidParameter": parameter} if parameter else {}))


def not_found(message: str) -> Refused:
    """The error for a missing resource."""
    return Refused("NotFoundException", message)


def conflict(message: str) -> Refused:
    """The error for a resource that already exists."""
    return Refused("ConflictException", message)


def need_kafka_version(version: str) -> None:
    """Check that MSK has the Kafka version.

    Raises:
        Refused: BadRequestException.
    """
    if version not in KAFKA_VERSIONS:
        raise bad_request(f"Unsupported Kafka version {version}; supported are {', '.join(KAFKA_VERSIONS)}", "kafkaVersion")


def page(things: Sequence[Any], asked: Asked, key: str) -> dict[str, Any]:
    """Return one page of a list.

    Args:
        things: the complete list.
        asked: the request, optionally with ``MaxResults`` and ``NextToken``.
        key: name of the list in the response.

    Returns:
        The page, with ``NextToken`` unless it is the last.
    """
    start = int(asked.get("NextToken") or 0)
    end = start + int(asked.get("MaxResults") or PAGE)
    more = {"NextToken": str(end)} if end < len(things) else {}
    return {key: list(things[start:end]), **more}
