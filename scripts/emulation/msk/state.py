"""What MSK holds in one account and region, and what all its operations ask of it."""

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
        since: when it was made.
        kafka_versions: those that it is for; none for any.
        revisions: its texts, oldest first, each with its description and time.
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
        place: where it is.
        name: its name.
        arn: its ARN.
        kind: PROVISIONED or SERVERLESS.
        tags: its tags.
        about: the API's description of the kind's part.
        since: when it was made.
        version: of its description; every change gives it another.
        policy: who else may use it, and that policy's version.
        operations: the changes made, by their ARN.
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

    def change(self, kind: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, str]:
        """Records a change that is done as soon as it is asked for.

        Args:
            kind: the operation's type, as ``UPDATE_BROKER_COUNT``.
            before: what it was, as MutableClusterInfo.
            after: what it is now.

        Returns:
            The answer to the request: the ARNs.
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
        clusters: by ARN.
        configurations: by ARN.
    """

    place: Place
    clusters: dict[str, Cluster] = field(default_factory=dict)
    configurations: dict[str, Configuration] = field(default_factory=dict)

    def cluster(self, asked: Asked) -> Cluster:
        """The cluster that a request names.

        Raises:
            Refused: NotFoundException.
        """
        arn = asked["ClusterArn"]
        if arn not in self.clusters:
            raise not_found(f"Cluster not found: {arn}")
        return self.clusters[arn]

    def provisioned(self, asked: Asked) -> Cluster:
        """The provisioned cluster that a request names, of the version that it names.

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
        """A configuration, and one of its revisions if one is named.

        Raises:
            Refused: BadRequestException, NotFoundException.
        """
        found = self.configurations.get(arn)
        if found is None:
            # In these words: Terraform's provider knows by them that a configuration is gone.
            raise bad_request(f"Configuration ARN does not exist: {arn}", "arn")
        if revision is not None and not 1 <= revision <= len(found.revisions):
            raise not_found(f"Configuration {arn} has no revision {revision}")
        return found

    def tagged(self) -> Iterator[tuple[str, dict[str, str]]]:
        """All that has tags: its ARN and the tags."""
        yield from ((cluster.arn, cluster.tags) for cluster in self.clusters.values())


def now() -> datetime:
    """The time; of no moment to any rule here."""
    return datetime.now(UTC)


def new_version() -> str:
    """A version as MSK gives one."""
    return "K" + "".join(secrets.choice(string.ascii_uppercase + string.digits) for _ in range(13))


def new_arn(place: Place, kind: str, name: str) -> str:
    """The ARN of a cluster or configuration, with the random end that MSK gives it."""
    return f"arn:{place.partition}:kafka:{place.region}:{place.account}:{kind}/{name}/{uuid.uuid4()}-{secrets.randbelow(24) + 2}"


def bad_request(message: str, parameter: str | None = None) -> Refused:
    """The error of a request that can't be."""
    return Refused("BadRequestException", message, **({"InvalidParameter": parameter} if parameter else {}))


def not_found(message: str) -> Refused:
    """The error of what is not there."""
    return Refused("NotFoundException", message)


def conflict(message: str) -> Refused:
    """The error of what is there already."""
    return Refused("ConflictException", message)


def need_kafka_version(version: str) -> None:
    """Refuses a version of Kafka that MSK does not have.

    Raises:
        Refused: BadRequestException.
    """
    if version not in KAFKA_VERSIONS:
        raise bad_request(f"Unsupported Kafka version {version}; supported are {', '.join(KAFKA_VERSIONS)}", "kafkaVersion")


def page(things: Sequence[Any], asked: Asked, key: str) -> dict[str, Any]:
    """One page of a list.

    Args:
        things: the whole list.
        asked: the request, with ``MaxResults`` and ``NextToken`` if it has them.
        key: the answer's name of the list.

    Returns:
        The page, and ``NextToken`` where more follows.
    """
    start = int(asked.get("NextToken") or 0)
    end = start + int(asked.get("MaxResults") or PAGE)
    more = {"NextToken": str(end)} if end < len(things) else {}
    return {key: list(things[start:end]), **more}
