"""Topics from within the cluster: ``python -m penstock.scripts.topics.in_pod REQUEST``, which the Job's pod runs.

It prints an `Answer` as the last line of its log. Errors are part of the answer, so a pod that has answered has succeeded.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from penstock.jobs.configuration.kafka_access import KafkaAccess, Security
from penstock.jobs.configuration.runtime import TERMINATION_FILE_VARIABLE
from penstock.jobs.kafka.credentials import signed_in
from penstock.scripts.topics.brokers import TopicBrokers
from penstock.scripts.topics.difference import ExistingTopic, TopicChange, WantedTopic, changes
from penstock.scripts.topics.errors import PlanOutdated
from penstock.sizing.errors import Faults, PenstockError

# Source: Kubernetes, "Termination messages": longer ones are cut.
MESSAGE_LIMIT = 4096


class Request(BaseModel):
    """What is asked for. It has no secrets.

    Args:
        address: bootstrap servers.
        security: of their listener.
        region: of the brokers.
        secret: ARN of the secret with the client's credentials, which the pod reads.
        ca: CA certificates in PEM.
        wanted: the topics.
        lose_records: whether changes that delete records are allowed.
        planned: the changes that somebody has agreed to, of all wanted topics; None: nothing is changed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    address: str
    security: Security
    region: str | None = None
    secret: str | None = None
    ca: str | None = None
    wanted: tuple[WantedTopic, ...]
    lose_records: bool = False
    planned: tuple[TopicChange, ...] | None = None


class Answer(BaseModel):
    """What came of it.

    Args:
        existing: those of the topics that existed before, with the settings that the plan depends on.
        refusals: changes that the brokers would reject, as `PenstockError.as_json`.
        errors: why there is no plan, or what has ended an apply.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    existing: dict[str, ExistingTopic] = {}
    refusals: tuple[dict[str, Any], ...] = ()
    errors: tuple[dict[str, Any], ...] = ()


def answered(request: Request) -> Answer:
    """Plan the topics, or apply a plan that is still right."""
    try:
        access = KafkaAccess(request.address, request.security, request.region, None, request.secret, ca=request.ca)
        brokers = TopicBrokers(signed_in(access))
        existing = brokers.existing(topic.name for topic in request.wanted)
        planned = changes(request.wanted, existing, lose_records=request.lose_records)
        if request.planned is None:
            known = {topic.name: _needed(topic, existing[topic.name]) for topic in request.wanted if topic.name in existing}
            return Answer(existing=known, refusals=_as_json(brokers.refusals(planned)))
        _apply(brokers, planned, request.planned)
    except PenstockError as error:
        return Answer(errors=_as_json([*error.errors] if isinstance(error, Faults) else [error]))
    return Answer()


def main() -> int:
    """Answers the request of a file."""
    text = answered(Request.model_validate_json(Path(sys.argv[1]).read_text(encoding="utf-8"))).model_dump_json()
    print(text, flush=True)
    file = os.environ.get(TERMINATION_FILE_VARIABLE)
    if file and len(text.encode()) <= MESSAGE_LIMIT:
        Path(file).write_text(text, encoding="utf-8")
    return 0


def _apply(brokers: TopicBrokers, planned: Sequence[TopicChange], agreed: Sequence[TopicChange]) -> None:
    if tuple(planned) != tuple(agreed):
        need = "the topics as they were when the plan was shown"
        raise PlanOutdated(path="topics", given="they have changed since", need=need, fix="run it again, and review the new plan")
    for change in planned:
        for action in change.actions:
            brokers.do(change, action)


def _needed(wanted: WantedTopic, existing: ExistingTopic) -> ExistingTopic:
    """Without the settings that no plan of this topic depends on: a log and a termination message are no place for hundreds."""
    names = {*wanted.config, *wanted.at_least, "cleanup.policy"}
    kept = {name: value for name, value in existing.config.items() if name in names}
    return ExistingTopic(existing.partitions, existing.replication, kept)


def _as_json(errors: Sequence[PenstockError]) -> tuple[dict[str, Any], ...]:
    return tuple(error.as_json() for error in errors)


if __name__ == "__main__":
    sys.exit(main())
