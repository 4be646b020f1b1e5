"""MSK's topic API as a role sees it: a proxy in front of an emulated AWS that denies what the role's statements don't allow.

Source: Amazon MSK Developer Guide, "IAM permissions for topic operations APIs"; Service Authorization Reference, Amazon MSK.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.forwarding_s3 import Answer, ForwardingS3
from tests.infra.iam_evaluation import allowed

# Method -> operation, and what it needs on the topic beside the right to connect to the cluster.
_OPERATIONS = {
    "GET": ("DescribeTopic", ("DescribeTopic", "DescribeTopicDynamicConfiguration")),
    "POST": ("CreateTopic", ("CreateTopic",)),
    "PUT": ("UpdateTopic", ("DescribeTopic", "AlterTopic", "AlterTopicDynamicConfiguration")),
}


class EnforcingMsk(ForwardingS3):
    """A proxy in front of an emulated AWS; a context manager. Requests that are not about topics pass.

    Args:
        endpoint: of the emulated AWS.
        statements: of the role.
    """

    def __init__(self, endpoint: str, statements: Iterable[Mapping[str, Any]]) -> None:
        super().__init__(endpoint)
        self._statements = list(statements)
        self.asked: set[str] = set()

    def handle(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        """Denies a request, or answers it as MSK does."""
        for action, resource in _needed(handler.command, unquote(urlsplit(handler.path).path), body):
            self.asked.add(action)
            if not allowed(self._statements, action, resource, {"aws:RequestedRegion": resource.split(":")[3]}):
                self.send(handler, _denied(action, resource))
                return
        self.send(handler, self.forward(handler, body))


def _needed(method: str, path: str, body: bytes) -> list[tuple[str, str]]:
    arn, found, name = path.removeprefix("/v1/clusters/").partition("/topics")
    if not found:
        return []
    topic = name.removeprefix("/") or json.loads(body)["topicName"]
    operation, actions = _OPERATIONS[method]
    topic_arn = f"{arn.replace(':cluster/', ':topic/')}/{topic}"
    of_topic = [(f"kafka-cluster:{action}", topic_arn) for action in actions]
    return [(f"kafka:{operation}", arn), ("kafka-cluster:Connect", arn), *of_topic]


def _denied(action: str, resource: str) -> Answer:
    message = f"User: arn:aws:sts::000000000000:assumed-role/deploy/ci is not authorized to perform: {action} on resource: {resource}"
    headers = [("Content-Type", "application/json"), ("x-amzn-errortype", "ForbiddenException")]
    return Answer(403, headers, json.dumps({"message": message}).encode())
