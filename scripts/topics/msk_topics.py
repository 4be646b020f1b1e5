"""Topics by MSK's API, which needs no network path to the brokers.

It differs from the brokers' own protocol: changes show in its answers within about a minute, none can be tried without being made, and
whether new settings of a topic replace all others is not documented. So all actions are applied first and waited for together, what can
be known is checked before, and a topic's other settings are sent with the changed ones.

Source: Amazon MSK Developer Guide, "Topic Operations"; MSK API Reference, "Topics" and "Topic".
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from penstock.scripts.provisioning.aws_access import code_of, translated
from penstock.scripts.topics.difference import Action, ExistingTopic, TopicChange
from penstock.scripts.topics.errors import BrokersNotReached, ChangeNotSeen, ChangeRefused, KafkaClusterNotFound, TopicRightMissing
from penstock.scripts.topics.msk_cluster import ACTIVE, MskCluster
from penstock.sizing.errors import PenstockError

# Answers are about a minute old, and a busy cluster needs half a minute to create a few hundred partitions.
SHOWN_S = 300.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0
_NOT_FOUND = {"NotFoundException", "UnknownTopicOrPartitionException"}
_DENIED = {"AccessDeniedException", "ForbiddenException", "UnauthorizedException", "AccessDenied"}
_EXISTS = {"TopicExistsException", "ConflictException"}
# Errors of the request itself.
_REFUSED = {"BadRequestException", "KafkaRequestException", "ReassignmentInProgressException", "GroupSubscribedToTopicException"}
# Errors of the cluster: MSK itself does not reach it, or it is busy.
_UNREACHED = {
    "ClusterConnectivityException",
    "ControllerMovedException",
    "InternalServerErrorException",
    "KafkaTimeoutException",
    "NotControllerException",
    "ServiceUnavailableException",
    "TooManyRequestsException",
}
# Source: Amazon MSK Developer Guide, "IAM permissions for topic operations APIs".
ACTIONS_OF = {
    "DescribeTopic": ("Connect", "DescribeTopic", "DescribeTopicDynamicConfiguration"),
    "CreateTopic": ("Connect", "CreateTopic"),
    "UpdateTopic": ("Connect", "DescribeTopic", "AlterTopic", "AlterTopicDynamicConfiguration"),
}
# The deploy role's statements with these rights.
STATEMENTS = "ConnectToBrokers, ManageTopics and ManageTopicsByMsk"
# Source: Apache Kafka, org.apache.kafka.common.internals.Topic.
_NAME, _LONGEST_NAME = re.compile(r"[A-Za-z0-9._-]+"), 249
# Kafka's defaults of settings whose reduction deletes records, of topics that don't set them. Source: Apache Kafka, "Topic configs".
_DEFAULTS = {"cleanup.policy": "delete", "retention.bytes": "-1", "delete.retention.ms": "86400000", "retention.ms": "604800000"}


class MskTopics:
    """The topics of an MSK cluster.

    Args:
        client: boto3's, of MSK in the cluster's region.
        cluster: the cluster.
        defaults: settings of topics that don't set them, by Kafka's names; Kafka's own for those that are missing.
        shown_s: how long a change may take to become visible, in seconds.

    Raises:
        KafkaClusterNotFound: TOP-005, the cluster is not active.
    """

    said = "requested"

    def __init__(self, client: Any, cluster: MskCluster, defaults: Mapping[str, str] | None = None, shown_s: float = SHOWN_S) -> None:
        if cluster.state != ACTIVE:
            need = "an ACTIVE cluster, for MSK's topic API"
            raise KafkaClusterNotFound(path=cluster.arn, given=f"its state is {cluster.state}", need=need, fix="wait until it is ACTIVE")
        self._client = client
        self._cluster = cluster
        self._defaults = {**_DEFAULTS, **(defaults or {})}
        self._shown_s = shown_s
        # Settings that a topic itself has, as last described.
        self._own: dict[str, Mapping[str, str]] = {}
        self._unseen: dict[str, list[tuple[TopicChange, Action]]] = {}

    def existing(self, names: Iterable[str]) -> dict[str, ExistingTopic]:
        """Describe those of the topics that exist.

        Raises:
            BrokersNotReached: TOP-002.
            TopicRightMissing: TOP-009.
            PenstockError: TOOL-030, DEP-001, RUN-020 or RUN-021.
        """
        return {name: topic for name in names if (topic := self._described(name)) is not None}

    def refusals(self, changes: Sequence[TopicChange]) -> list[PenstockError]:
        """Errors of new topics that MSK would reject by their name or replication factor. It validates settings only when they are made."""
        return [fault for change in changes if "create" in change.actions for fault in self._faults(change)]

    def do(self, change: TopicChange, action: Action) -> None:
        """Apply one action to a topic, after its earlier ones are visible.

        Raises:
            BrokersNotReached: TOP-002.
            ChangeRefused: TOP-003.
            ChangeNotSeen: TOP-006.
            TopicRightMissing: TOP-009.
            PenstockError: TOOL-030, DEP-001, RUN-020 or RUN-021.
        """
        self._settle(change.name)
        if action == "create":
            self._create(change)
        else:
            asked = {"PartitionCount": int(change.partitions.after)} if action == "grow" else {"Configs": self._merged(change)}
            self._call("UpdateTopic", f"{action} {change.name}", lambda: self._client.update_topic(**self._at(change.name), **asked))
        self._unseen.setdefault(change.name, []).append((change, action))

    def settle(self) -> None:
        """Wait until MSK shows all applied actions.

        Raises:
            ChangeNotSeen: TOP-006.
            TopicRightMissing: TOP-009.
            PenstockError: TOOL-030, DEP-001, RUN-020 or RUN-021.
        """
        for name in list(self._unseen):
            self._settle(name)

    def _create(self, change: TopicChange) -> None:
        asked = {
            "PartitionCount": int(change.partitions.after),
            "ReplicationFactor": int(change.replication.after),
            **({"Configs": _encoded({name: each.after for name, each in change.config.items()})} if change.config else {}),
        }
        self._call("CreateTopic", f"create {change.name}", lambda: self._client.create_topic(**self._at(change.name), **asked))

    def _described(self, name: str) -> ExistingTopic | None:
        try:
            found = self._call("DescribeTopic", name, lambda: self._client.describe_topic(**self._at(name)))
        except _Missing:
            return None
        own = decoded(found.get("Configs") or "")
        self._own[name] = own
        return ExistingTopic(found["PartitionCount"], found["ReplicationFactor"], {**self._defaults, **own})

    def _merged(self, change: TopicChange) -> str:
        return _encoded({**self._own.get(change.name, {}), **{name: each.after for name, each in change.config.items()}})

    def _settle(self, name: str) -> None:
        until_s, pause_s = time.monotonic() + self._shown_s, _FIRST_PAUSE_S
        waited = self._unseen.pop(name, [])
        while waited:
            existing = self._described(name)
            if existing is not None and all(_shows(existing, change, action) for change, action in waited):
                return
            if time.monotonic() > until_s:
                actions = ", ".join(action for _, action in waited)
                need = f"{actions} of {name} visible within {self._shown_s:g} s"
                raise ChangeNotSeen(path=f"topic {name}", need=need, fix="retry: completed changes are not repeated")
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _faults(self, change: TopicChange) -> list[PenstockError]:
        name, copies, brokers = change.name, int(change.replication.after), self._cluster.brokers
        faults: list[PenstockError] = []
        if not _NAME.fullmatch(name) or name in (".", "..") or len(name) > _LONGEST_NAME:
            need = f"letters, digits, '.', '_' and '-', at most {_LONGEST_NAME} of them"
            faults.append(ChangeRefused(path=f"create {name}", given=name, need=need, fix="give the topic another name"))
        if brokers is not None and copies > brokers:
            need = f"at most as many replicas as the cluster has brokers, {brokers}"
            fix = "correct the spec's topics; the default replication is the environment's, or --replication"
            faults.append(ChangeRefused(path=f"create {name}", given=f"{copies} replicas", need=need, fix=fix))
        return faults

    def _at(self, name: str) -> dict[str, str]:
        return {"ClusterArn": self._cluster.arn, "TopicName": name}

    def _call(self, operation: str, path: str, ask: Callable[[], Any]) -> Any:
        with translated("MSK"):
            try:
                return ask()
            except ClientError as error:
                fault = self._fault(operation, path, error)
                if fault is None:
                    raise
                raise fault from None

    def _fault(self, operation: str, path: str, error: ClientError) -> Exception | None:
        """The coded error of an answer of MSK; None: `translated` finds it."""
        code, said = code_of(error), error.response.get("Error", {}).get("Message", "")
        if code in _DENIED:
            return self._denied(operation, said)
        if code in _NOT_FOUND and operation == "DescribeTopic":
            return _Missing()
        if code in _EXISTS and operation == "CreateTopic":
            # As its answers are a minute old, a topic of the last run may not have been shown.
            need, fix = "a topic that does not exist, or that MSK's API shows", "wait a minute until MSK's API shows it, and run it again"
            return ChangeRefused(path=path, given=f"{code}: {said}", need=need, fix=fix)
        if code in _REFUSED:
            fix = "correct the spec's topics; the default replication is the environment's, or --replication"
            return ChangeRefused(path=path, given=said, need="a change that the brokers accept", fix=fix)
        return _unreached(path, f"{code}: {said}") if code in _UNREACHED else None

    def _denied(self, operation: str, said: str) -> TopicRightMissing:
        needed = [f"kafka:{operation}", *(f"kafka-cluster:{action}" for action in ACTIONS_OF[operation])]
        named = re.search(r"kafka(?:-cluster)?:[A-Z][A-Za-z]+", said)
        missing = named[0] if named else f"one of {', '.join(needed)}"
        topics = f"{self._cluster.arn.replace(':cluster/', ':topic/')}/*"
        return TopicRightMissing(
            path=f"{operation} by MSK's API",
            given=said or "no reason",
            need=f"{missing} in the policy of the caller's role, for {self._cluster.arn} and {topics}",
            fix=f"add the statements {STATEMENTS} that python -m penstock.infra.pipeline role prints, to the role that runs this command",
        )


class _Missing(Exception):
    """The topic does not exist."""


def _unreached(path: str, given: str) -> BrokersNotReached:
    fix = "retry; or, from a machine that reaches the brokers, --through here"
    return BrokersNotReached(path=path, given=given, need="brokers that respond to MSK's API", fix=fix)


def decoded(configs: str) -> dict[str, str]:
    """Settings of a topic in the API's format: Base64 of a JSON object, or of ``name=value`` lines, as MSK's documentation shows them."""
    try:
        text = base64.b64decode(configs).decode()
    except (binascii.Error, UnicodeDecodeError):
        return {}
    try:
        known = json.loads(text)
    except ValueError:
        known = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in known.items() if value is not None}


def _encoded(settings: Mapping[str, str]) -> str:
    return base64.b64encode(json.dumps(dict(settings)).encode()).decode()


def _shows(existing: ExistingTopic, change: TopicChange, action: Action) -> bool:
    if action == "configure":
        return all(existing.config.get(name) == each.after for name, each in change.config.items())
    return existing.partitions >= int(change.partitions.after)
