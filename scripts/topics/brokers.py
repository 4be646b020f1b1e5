"""Admin client of ``penstock topics``: reads and changes topics."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.kafka.errors import KafkaCredentialsRefused
from penstock.jobs.kafka.heard import Heard
from penstock.jobs.kafka.security import client_settings
from penstock.scripts.topics.difference import Action, ExistingTopic, TopicChange
from penstock.scripts.topics.errors import BrokersNotReached, ChangeNotSeen, ChangeRefused
from penstock.sizing.errors import PenstockError

# A busy cluster needs this long to create a few hundred partitions.
ANSWER_S = 30.0
# Metadata propagates from broker to broker; that takes seconds even on large clusters.
SHOWN_S = 60.0


class TopicBrokers:
    """The topics of a cluster.

    Args:
        access: connection settings of the brokers.
        answer_s: request timeout in seconds.

    Raises:
        NoKafkaCredentials: JOB-010.
    """

    said = "done"

    def __init__(self, access: KafkaAccess, answer_s: float = ANSWER_S) -> None:
        self._access = access
        self._answer_s = answer_s
        self._heard = Heard(access)
        settings = {**client_settings(access), "log_level": 0, "error_cb": self._heard}
        self._admin = AdminClient(settings)

    def existing(self, names: Iterable[str]) -> dict[str, ExistingTopic]:
        """Describe those of the topics that exist.

        Raises:
            BrokersNotReached: TOP-002.
            KafkaCredentialsRefused: JOB-111.
        """
        wanted = list(names)
        metadata = self._answer(lambda: self._admin.list_topics(timeout=self._answer_s).topics)
        known = [name for name in wanted if name in metadata]
        if not known:
            return {}
        asked = {name: ConfigResource(ResourceType.TOPIC, name) for name in known}
        answers = self._admin.describe_configs(list(asked.values()), request_timeout=self._answer_s)
        return {
            name: ExistingTopic(
                partitions=len(metadata[name].partitions),
                replication=min((len(partition.replicas) for partition in metadata[name].partitions.values()), default=0),
                config=self._config(answers[asked[name]]),
            )
            for name in known
        }

    def matching(self, pattern: str) -> list[str]:
        """The topics whose whole name matches a regular expression.

        Raises:
            BrokersNotReached: TOP-002.
        """
        metadata = self._answer(lambda: self._admin.list_topics(timeout=self._answer_s).topics)
        return sorted(name for name in metadata if re.fullmatch(pattern, name))

    def refusals(self, changes: Sequence[TopicChange]) -> list[PenstockError]:
        """Validate the changes on the brokers without applying them; topics with the same error are grouped."""
        refused: dict[tuple[Action, str], list[str]] = {}
        faults: dict[tuple[Action, str], PenstockError] = {}
        for change in changes:
            for action in change.actions:
                fault = self._refusal(change, action, validate_only=True)
                if fault is not None:
                    faults[action, fault.given] = fault
                    refused.setdefault((action, fault.given), []).append(change.name)
        for (action, given), names in refused.items():
            faults[action, given].path = f"{action} {', '.join(names)}"
        return list(faults.values())

    def do(self, change: TopicChange, action: Action) -> None:
        """Apply one action to a topic and wait until the brokers report it.

        Raises:
            ChangeRefused: TOP-003.
            ChangeNotSeen: TOP-006.
            BrokersNotReached: TOP-002.
        """
        fault = self._refusal(change, action, validate_only=False)
        if fault is not None:
            raise fault
        self._wait_until_seen(change, action)

    def settle(self) -> None:
        """Nothing: each action is waited for when it is applied, which takes seconds."""

    def _refusal(self, change: TopicChange, action: Action, *, validate_only: bool) -> PenstockError | None:
        asked = self._asked(change, action, validate_only=validate_only)
        try:
            asked.result()
        except KafkaException as error:
            return self._refused(change, action, error)
        return None

    def _asked(self, change: TopicChange, action: Action, *, validate_only: bool) -> Future[None]:
        times = {"request_timeout": self._answer_s, "validate_only": validate_only}
        if action == "configure":
            (future,) = self._admin.incremental_alter_configs([_settings(change)], **times).values()
        elif action == "grow":
            grown = NewPartitions(change.name, int(change.partitions.after))
            (future,) = self._admin.create_partitions([grown], operation_timeout=self._answer_s, **times).values()
        else:
            (future,) = self._admin.create_topics([_new(change)], operation_timeout=self._answer_s, **times).values()
        asked: Future[None] = future
        return asked

    def _wait_until_seen(self, change: TopicChange, action: Action) -> None:
        until_s = time.monotonic() + SHOWN_S
        while time.monotonic() < until_s:
            existing = self.existing([change.name]).get(change.name)
            if existing is not None and self._shows(existing, change, action):
                return
        need = f"{action} of {change.name} visible within {SHOWN_S:g} s"
        raise ChangeNotSeen(path=f"topic {change.name}", need=need, fix="retry: completed changes are not repeated")

    def _shows(self, existing: ExistingTopic, change: TopicChange, action: Action) -> bool:
        if action == "configure":
            return all(existing.config.get(name) == changed.after for name, changed in change.config.items())
        return existing.partitions >= int(change.partitions.after)

    def _config(self, answer: Future[Any]) -> Mapping[str, str]:
        entries = self._answer(answer.result)
        return {name: str(entry.value) for name, entry in entries.items() if entry.value is not None}

    def _answer(self, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except KafkaException as error:
            raise self._unreached(error) from None

    def _refused(self, change: TopicChange, action: Action, error: KafkaException) -> PenstockError:
        fault = error.args[0]
        if fault.code() < 0:
            # The client's own codes are negative: no broker has responded.
            return self._unreached(error)
        need = "a change that the brokers accept"
        return ChangeRefused(path=f"{action} {change.name}", given=fault.str(), need=need, fix=_way_out(fault.name()))

    def _unreached(self, error: KafkaException) -> BrokersNotReached | KafkaCredentialsRefused:
        # The reason of a failed connection arrives in the error callback, not in the exception of the blocking call.
        self._admin.poll(0)
        if (refused := self._heard.refused()) is not None:
            return refused
        said = "; ".join(dict.fromkeys([error.args[0].str(), *self._heard.texts[-2:]]))
        need = f"a response within {self._answer_s:g} s over {self._access.security}"
        fix = "check that the brokers are running, that this machine can reach them (from inside a private network), and --security"
        return BrokersNotReached(path="brokers", given=f"{self._access.address}: {said}", need=need, fix=fix)


def _new(change: TopicChange) -> NewTopic:
    config = {name: changed.after for name, changed in change.config.items()}
    return NewTopic(
        change.name, num_partitions=int(change.partitions.after), replication_factor=int(change.replication.after), config=config
    )


def _settings(change: TopicChange) -> ConfigResource:
    entries = [ConfigEntry(name, changed.after, incremental_operation=AlterConfigOpType.SET) for name, changed in change.config.items()]
    return ConfigResource(ResourceType.TOPIC, change.name, incremental_configs=entries)


def _way_out(name: str | None) -> str:
    if name and "AUTHORIZATION" in name:
        return (
            "grant this identity the permissions to create and alter topics (kafka-cluster:CreateTopic, AlterTopic, *DynamicConfiguration)"
        )
    return "correct the spec's topics; the default replication is the environment's, or --replication"
