"""What a rewind of a job means, before it is done: the records that it reads again, and what its sinks get twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.driver import rewind
from penstock.jobs.errors import SecretUnusable
from penstock.jobs.kafka.brokers import Brokers
from penstock.jobs.kafka.errors import BrokersUnreachable, KafkaCredentialsRefused, NoKafkaCredentials
from penstock.jobs.spec import JobSpec, Sink, SpecFile, ToConsole, ToFiles, ToKafka, ToPostgres, ToRedis, ToWebhook
from penstock.jobs.storage.errors import CheckpointDamaged
from penstock.jobs.storage.generation import Generation
from penstock.jobs.storage.rewind_request import StartPoint
from penstock.scripts.errors import AwsNotReached, AwsRefused
from penstock.scripts.operations.job_records import JobRecords
from penstock.scripts.operations.status_table import duration
from penstock.scripts.render.screen import Screen
from penstock.scripts.render.table import Column, facts, table
from penstock.scripts.topics.errors import KafkaClusterNotFound, NoBrokersNamed, NoSecretNamed
from penstock.sizing.errors import PenstockError

# Whose cause is that this machine is not where the job runs: the driver asks the brokers again.
NOT_FROM_HERE = (
    AwsNotReached,
    AwsRefused,
    BrokersUnreachable,
    KafkaClusterNotFound,
    KafkaCredentialsRefused,
    NoBrokersNamed,
    NoKafkaCredentials,
    NoSecretNamed,
    SecretUnusable,
)
_TOPICS = (Column("source"), Column("topic"), Column("partitions", right=True), Column("records to read", right=True))
_SINKS = (Column("sink"), Column("rows that it has had", wraps=True))


@dataclass(frozen=True)
class ReadAgain:
    """What is read again of a topic.

    Args:
        source: that reads it.
        topic: its name.
        partitions: number of them.
        records: up to now; an upper bound for a topic that is compacted, or written in transactions.
        starts: partition -> the first offset.
    """

    source: str
    topic: str
    partitions: int
    records: int
    starts: Mapping[int, int]


@dataclass(frozen=True)
class Counted:
    """The records that a rewind reads again.

    Args:
        topics: of all sources; empty if they are not counted.
        why_not: why they are not counted; None if they are.
    """

    topics: tuple[ReadAgain, ...] = ()
    why_not: str | None = None

    @property
    def records(self) -> int:
        """Of all topics."""
        return sum(topic.records for topic in self.topics)


def counted(spec: SpecFile, start: StartPoint, access: Callable[[], KafkaAccess]) -> Counted:
    """Counts what a rewind reads again, if the brokers can be reached from this machine.

    Args:
        spec: the job's.
        start: where it begins to read.
        access: says how the brokers are reached.

    Raises:
        RewindImpossible: JOB-093.
        PenstockError: JOB-002, JOB-020.
    """
    if not spec.job.spec.kafka_sources:
        return Counted()
    try:
        brokers = Brokers(access(), group=f"penstock.{spec.job.metadata.name}")
    except NOT_FROM_HERE as error:
        return Counted(why_not=in_one_line(error))
    try:
        found = rewind.to(start, spec.job.spec.kafka_sources, brokers)
    except NOT_FROM_HERE as error:
        return Counted(why_not=in_one_line(error))
    finally:
        brokers.close()
    return Counted(tuple(_read_again(found)))


def _read_again(found: rewind.Rewind) -> Iterator[ReadAgain]:
    for source, topics in found.starts.items():
        for topic, starts in topics.items():
            ends = found.ends[source][topic]
            yield ReadAgain(source, topic, len(starts), sum(ends[number] - start for number, start in starts.items()), starts)


def begins(start: StartPoint) -> str:
    """Where a job begins to read, in words."""
    if isinstance(start, int):
        return f"again from {rewind.instant(start)} on"
    return {"earliest": "from their first records on", "latest": "from their ends on", "spec": "from where startingOffsets say"}[start]


def skipped(read: Counted, records: JobRecords, newest: Generation) -> int:
    """Records before the start that the job has not read yet, as far as its last micro-batches say; 0 of a damaged checkpoint.

    Raises:
        BucketUnreachable: JOB-009.
    """
    reached: dict[tuple[str, int], int] = {}
    with suppress(CheckpointDamaged):
        for _, last in records.last_micro_batches(newest):
            for topic, partitions in last.positions.items():
                for number, position in partitions.items():
                    reached[topic, number] = min(position.next, reached.get((topic, number), position.next))
    starts = {(topic.topic, number): start for topic in read.topics for number, start in topic.starts.items()}
    return sum(max(0, starts[key] - reached[key]) for key in starts.keys() & reached.keys())


def topics_table(read: Counted, screen: Screen) -> list[str]:
    """A row for each topic, or why there is none."""
    if read.why_not is None and not read.topics:
        return facts([("records", "none: no source reads a topic")], screen)
    if read.why_not is not None:
        text = f"the brokers are not reached from here ({read.why_not}). The driver checks the time and counts when it starts"
        return facts([("records", f"not counted: {text}")], screen)
    rows = [(topic.source, topic.topic, str(topic.partitions), f"{topic.records:,}") for topic in read.topics]
    return table(_TOPICS, rows, screen, total=("", "", "", f"{read.records:,}") if len(rows) > 1 else None)


def takes(records: int, capacity_events_per_s: float | None) -> str:
    """How long it takes to read them again.

    Args:
        records: that are read again.
        capacity_events_per_s: of the plan; None if it is not known.
    """
    if not capacity_events_per_s:
        return "as long as the slots need; a spec with a load would say how long"
    seconds = timedelta(seconds=records / capacity_events_per_s)
    return f"about {duration(seconds)} at the plan's {capacity_events_per_s:,.0f} events/s, beside what comes meanwhile"


def sinks_table(spec: JobSpec, screen: Screen) -> list[str]:
    """What each sink gets of rows that it has had."""
    return table(_SINKS, [(name, twice(sink)) for name, sink in spec.sinks.items()], screen)


def twice(sink: Sink) -> str:
    """What a sink does with rows that it has had."""
    match sink:
        case ToFiles():
            return "are written again, in new files: exactly-once holds within a checkpoint"
        case ToKafka():
            return (
                f"are written again, as new records: {'exactly-once holds within a checkpoint' if sink.exactly_once else 'at least once'}"
            )
        case ToPostgres() if sink.postgres.version:
            return f"overwrite their keys, unless the table has a greater {sink.postgres.version}"
        case ToPostgres() | ToRedis():
            return "overwrite their keys: until the job has caught up, older values stand in for newer ones"
        case ToWebhook():
            return "are sent again, in requests with other idempotency keys"
        case ToConsole():
            return "are printed again"
        case _:
            return "are given to the function again, under other numbers of micro-batches"


def in_one_line(error: PenstockError) -> str:
    """An error without its fix."""
    rest = "; ".join(part for part in (error.given, error.need) if part)
    return f"{error.code}: {error.title}: {rest}" if rest else f"{error.code}: {error.title}"
