"""A broker whose own authorizer lets a user do what the statements of a role allow, and nothing else.

Source: Amazon MSK Developer Guide, "Semantics of IAM authorization policy actions and resources", which names the operation of Kafka's ACLs
for each action of IAM; Apache Kafka, "Authorization and ACLs".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from tests.emulated.secured_broker import USER, SecuredBroker

_PRINCIPAL = f"User:{USER}"
# Those without TLS, and the broker itself, may do everything.
_AUTHORIZER = """
authorizer.class.name=RecordingAuthorizer
super.users=User:ANONYMOUS
"""
_OPERATIONS = {
    "kafka-cluster:DescribeClusterDynamicConfiguration": AclOperation.DESCRIBE_CONFIGS,
    "kafka-cluster:WriteDataIdempotently": AclOperation.IDEMPOTENT_WRITE,
    "kafka-cluster:DescribeTopic": AclOperation.DESCRIBE,
    "kafka-cluster:ReadData": AclOperation.READ,
    "kafka-cluster:WriteData": AclOperation.WRITE,
    "kafka-cluster:DescribeGroup": AclOperation.DESCRIBE,
    "kafka-cluster:AlterGroup": AclOperation.READ,
    "kafka-cluster:DescribeTransactionalId": AclOperation.DESCRIBE,
    "kafka-cluster:AlterTransactionalId": AclOperation.WRITE,
}
_RESOURCES = {"topic": ResourceType.TOPIC, "group": ResourceType.GROUP, "transactional-id": ResourceType.TRANSACTIONAL_ID}
# Kafka's name of the cluster as a resource.
_CLUSTER = "kafka-cluster"


class RestrictingBroker(SecuredBroker):
    """A broker where `USER` may do nothing until it is allowed.

    Args:
        folder: for all that it needs, removed by whoever made it.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._decisions = folder / "decisions"

    def allow(self, statements: Iterable[Mapping[str, Any]]) -> None:
        """Lets `USER` do what a role's statements allow on Kafka."""
        # Its answers come as long as it is there.
        admin = AdminClient({"bootstrap.servers": self.address})
        for one in admin.create_acls(list(dict.fromkeys(acls(statements)))).values():
            one.result()

    def decided(self, *results: Literal["ALLOWED", "DENIED", "HIDDEN"]) -> set[tuple[str, str, str]]:
        """Operation, type and name of the resource of all that `USER` was allowed, denied, or denied without a word."""
        lines = [line.split(" ", 4) for line in self._decisions.read_text(encoding="utf-8").splitlines()]
        return {(operation, kind, name) for user, said, operation, kind, name in lines if user == USER and said in results}

    def _settings(self, controller_port: int) -> Path:
        settings = super()._settings(controller_port)
        settings.write_text(settings.read_text(encoding="utf-8") + _AUTHORIZER, encoding="utf-8")
        return settings

    def _java(self, main: str, *arguments: str) -> list[str]:
        java, *rest = super()._java(main, *arguments)
        return [java, f"-Dpenstock.decisions={self._decisions}", *rest]


def acls(statements: Iterable[Mapping[str, Any]]) -> Iterator[AclBinding]:
    """The ACLs that allow what the statements allow."""
    for statement in statements:
        for action in statement["Action"]:
            for resource in statement["Resource"] if action in _OPERATIONS else ():
                kind, name, pattern = _resource(resource)
                yield AclBinding(kind, name, pattern, _PRINCIPAL, "*", _OPERATIONS[action], AclPermissionType.ALLOW)


def _resource(arn: str) -> tuple[ResourceType, str, ResourcePatternType]:
    """Of ``arn:aws:kafka:<region>:<account>:<kind>/<cluster>/<id>/<name>``, where a name may end with an asterisk."""
    kind, _, rest = arn.split(":", 5)[5].partition("/")
    if kind == "cluster":
        return ResourceType.BROKER, _CLUSTER, ResourcePatternType.LITERAL
    name = rest.split("/", 2)[2]
    if name.endswith("*") and name != "*":
        return _RESOURCES[kind], name.removesuffix("*"), ResourcePatternType.PREFIXED
    return _RESOURCES[kind], name, ResourcePatternType.LITERAL
