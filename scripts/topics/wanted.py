"""Topics required by an environment and the plans of its jobs."""

from __future__ import annotations

from penstock.infra.environment import Environment
from penstock.infra.parts.kafka import Kafka
from penstock.infra.plans import EnvironmentPlans, JobPlan
from penstock.jobs.spec.requested_topics import CLEANUP_POLICY, MAX_RECORD_BYTES, RETENTION, AskedTopic, asked_topics
from penstock.scripts.topics.difference import WantedTopic
from penstock.sizing.kafka.demand import EXPRESS_REPLICATION
from penstock.sizing.kafka.partitions import most_partitions

_MS_PER_H = 3_600_000
MAX_MESSAGE_BYTES = "max.message.bytes"


def wanted_topics(environment: Environment, plans: EnvironmentPlans, replication: int | None = None) -> tuple[WantedTopic, ...]:
    """Return the topics of all jobs, in the order of the environment.

    The number of partitions is the highest of the plans. What no spec names comes from the load that a job is planned for, otherwise
    from the environment.

    Args:
        environment: the environment.
        plans: plans of its jobs.
        replication: replication factor where no spec names one; None: from the jobs' loads and the environment.

    Raises:
        PenstockError: SPEC-013, two jobs disagree.
    """
    asked = asked_topics([job.spec for job in plans.jobs])
    partitions = most_partitions(job.plan.kafka.topics for job in plans.jobs)
    loads = _loads(plans)
    kafka = environment.spec.kafka
    # With an emulated AWS, there is a single broker, on this machine.
    copies = 1 if replication is None and environment.spec.endpoints is not None else replication
    return tuple(
        _wanted(topic, partitions[name], loads.get(name), kafka, copies or _replication(loads.get(name), kafka))
        for name, topic in asked.items()
    )


class _Load:
    """A topic's requirements from loads: the longest retention and the highest replication factor."""

    def __init__(self) -> None:
        self.retention_ms = 0
        self.replication = 0

    def take(self, job: JobPlan) -> None:
        load = job.plan.kafka.load
        if load is not None:
            self.retention_ms = max(self.retention_ms, round(load.retention_h * _MS_PER_H))
            self.replication = max(self.replication, load.replication)


def _loads(plans: EnvironmentPlans) -> dict[str, _Load]:
    """Requirements from loads, by topic that a job with a load reads."""
    loads: dict[str, _Load] = {}
    for job in plans.jobs:
        if job.plan.kafka.load is not None:
            for topic in job.targets.source_topics:
                loads.setdefault(topic, _Load()).take(job)
    return loads


def _wanted(topic: AskedTopic, partitions: int, load: _Load | None, kafka: Kafka | None, replication: int) -> WantedTopic:
    return WantedTopic(
        name=topic.name,
        partitions=partitions,
        partitions_asked=topic.partitions is not None,
        replication=topic.replication or replication,
        replication_asked=topic.replication is not None,
        config=topic.config,
        at_creation=_at_creation(topic, load, kafka),
        at_least={MAX_MESSAGE_BYTES: MAX_RECORD_BYTES} if topic.written and MAX_MESSAGE_BYTES not in topic.config else {},
    )


def _replication(load: _Load | None, kafka: Kafka | None) -> int:
    if kafka is None:
        return 1
    # Express and serverless clusters always keep three copies.
    if kafka.kind in ("express", "serverless"):
        return EXPRESS_REPLICATION
    return load.replication if load is not None else kafka.replication


def _at_creation(topic: AskedTopic, load: _Load | None, kafka: Kafka | None) -> dict[str, str]:
    """Retention of a new topic, as the storage is planned for. A compacted topic keeps the last record of each key forever."""
    if RETENTION in topic.config or topic.config.get(CLEANUP_POLICY) == "compact":
        return {}
    if load is not None:
        return {RETENTION: str(load.retention_ms)}
    return {RETENTION: str(kafka.retention)} if kafka is not None else {}
