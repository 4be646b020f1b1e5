"""What a driver needs to know of the brokers before its query starts: the topics' partitions and the start offsets."""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.kafka.errors import BrokersUnreachable, KafkaCredentialsRefused, NotCommitted, OffsetGone, RecordsGone, TopicNotFound
from penstock.jobs.kafka.heard import Heard
from penstock.jobs.kafka.security import client_settings
from penstock.jobs.kafka.topic_access import hidden
from penstock.jobs.spec import KafkaSource
from penstock.jobs.spec.sources import STARTING_OFFSETS
from penstock.jobs.spec.times import epoch_ms
from penstock.sizing.errors import raise_all

Answer = TypeVar("Answer")

TIMEOUT_S = 20.0
# Kafka protocol guide, "Error Codes": the retriable ones of a broker that has just started or of a topic that has just been created. The
# delay is the consumer's default retry.backoff.ms.
_ASK_AGAIN = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
}
_BACKOFF_S = 0.1
# Apache Kafka 4.3, org.apache.kafka.common.internals.Topic: excluded from patterns.
_KAFKAS_OWN = {"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"}


class Brokers:
    """The brokers, queried on behalf of a consumer group that does not consume by itself.

    Args:
        access: to the brokers, with user and password if they ask for them.
        group: the consumer group whose committed offsets count, for sources that name none.

    Raises:
        NoKafkaCredentials: JOB-010.
    """

    def __init__(self, access: KafkaAccess, group: str) -> None:
        self._access = access
        self._group = group
        self._settings = {
            **client_settings(access),
            "error_cb": (heard := Heard(access)),
            "group.id": group,
            "enable.auto.commit": False,
            "allow.auto.create.topics": False,
            "log_level": 0,
        }
        self._heard = heard
        # All offsets of a partition: another reader of the group may have committed one within an open transaction.
        self._consumer = Consumer({**self._settings, "isolation.level": "read_uncommitted"})

    def partitions(self, topics: Iterable[str]) -> dict[str, int]:
        """Topic -> number of partitions.

        Raises:
            TopicNotFound: JOB-002, TopicAccessDenied: JOB-125; all such topics at once.
            BrokersUnreachable: JOB-001; KafkaCredentialsRefused: JOB-111.
        """
        existing = self._topics()
        wanted = list(dict.fromkeys(topics))
        self._refuse_missing(wanted, existing)
        return {topic: existing[topic] for topic in wanted}

    def starts(self, sources: Mapping[str, KafkaSource], *, begun: bool = False) -> dict[str, dict[str, dict[int, int]]]:
        """Source -> topic -> partition -> the start offset if there is no checkpoint.

        Args:
            sources: by name.
            begun: whether there is a checkpoint, which takes precedence over committed offsets.

        Raises:
            TopicNotFound: JOB-002, also for a pattern that matches no topic.
            TopicAccessDenied: JOB-125.
            OffsetGone: JOB-020.
            NotCommitted: JOB-107.
            BrokersUnreachable: JOB-001; KafkaCredentialsRefused: JOB-111.
        """
        return {
            name: {topic: self.starting_offsets(sources[name], topic, count, begun=begun) for topic, count in topics.items()}
            for name, topics in self._partitions_of(sources).items()
        }

    def starting_offsets(self, source: KafkaSource, topic: str, partitions: int, *, begun: bool = False) -> dict[int, int]:
        """Partition of one topic -> the start offset if there is no checkpoint.

        Raises:
            OffsetGone: JOB-020, a committed offset that the partition no longer has.
            NotCommitted: JOB-107, a partition without a committed offset that must have one.
            BrokersUnreachable: JOB-001; KafkaCredentialsRefused: JOB-111.
        """
        try:
            edges = {number: self._edges(self._consumer, topic, number) for number in range(partitions)}
            latest = self._latest(source, topic, edges)
            # Spark refuses a start after the end: a time or a committed offset may be within an open transaction.
            return {number: min(start, latest[number]) for number, start in self._asked(source, topic, edges, latest, begun=begun).items()}
        except KafkaException as error:
            raise self._unreachable(error) from None

    def ends(self, sources: Mapping[str, KafkaSource]) -> dict[str, dict[str, dict[int, int]]]:
        """Source -> topic -> partition -> offset after the last record that the source would read now.

        Raises:
            TopicNotFound: JOB-002, also for a pattern that matches no topic.
            TopicAccessDenied: JOB-125.
            BrokersUnreachable: JOB-001; KafkaCredentialsRefused: JOB-111.
        """
        return {
            name: {topic: self._ends(sources[name], topic, count) for topic, count in topics.items()}
            for name, topics in self._partitions_of(sources).items()
        }

    def _ends(self, source: KafkaSource, topic: str, partitions: int) -> dict[int, int]:
        try:
            return self._latest(source, topic, {number: self._edges(self._consumer, topic, number) for number in range(partitions)})
        except KafkaException as error:
            raise self._unreachable(error) from None

    def gone(self, positions: Mapping[str, Mapping[int, int]]) -> Iterator[RecordsGone]:
        """The partitions that no longer, or not yet, have the records that are to be read next.

        Args:
            positions: topic -> partition -> the next offset to read.

        Raises:
            BrokersUnreachable: JOB-001; KafkaCredentialsRefused: JOB-111.
        """
        try:
            for topic, offsets in positions.items():
                for number, offset in offsets.items():
                    if _outside(offset, edges := self._edges(self._consumer, topic, number)):
                        yield _unread(topic, number, offset, edges)
        except KafkaException as error:
            raise self._unreachable(error) from None

    def first_times(self, topic: str, starts: Mapping[int, int]) -> dict[int, int]:
        """Partition -> timestamp in epoch milliseconds of the first record that it has, where a start is that record and others have been
        before it: Kafka has deleted them.

        Args:
            topic: name.
            starts: partition -> offset.

        Raises:
            BrokersUnreachable: JOB-001; KafkaCredentialsRefused: JOB-111.
        """
        try:
            edges = {number: self._edges(self._consumer, topic, number) for number in starts}
            asked = [number for number, (earliest, latest) in edges.items() if 0 < earliest == starts[number] < latest]
            return {number: self._time_of(topic, number, starts[number]) for number in asked}
        except KafkaException as error:
            raise self._unreachable(error) from None

    def _time_of(self, topic: str, partition: int, offset: int) -> int:
        """Timestamp of the first record from an offset on."""
        place = TopicPartition(topic, partition, offset)
        self._consumer.assign([place])
        try:
            message = self._consumer.poll(TIMEOUT_S)
        finally:
            self._consumer.unassign()
        if message is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        if message.error() is not None:
            raise KafkaException(message.error())
        return int(message.timestamp()[1])

    def commit(self, ends: Mapping[str, Mapping[int, int]]) -> None:
        """Commits the group's offsets; they have no effect on the job while there is a checkpoint.

        Args:
            ends: topic -> partition -> the next offset to read.

        Raises:
            BrokersUnreachable: JOB-001; KafkaCredentialsRefused: JOB-111.
        """
        places = [TopicPartition(topic, number, offset) for topic, parts in ends.items() for number, offset in parts.items()]
        if not places:
            return
        try:
            _answer(lambda: self._consumer.commit(offsets=places, asynchronous=False))
        except KafkaException as error:
            raise self._unreachable(error) from None

    def close(self) -> None:
        """Closes the clients."""
        self._consumer.close()
        # Where a cached property keeps its value.
        if "_committed_reader" in self.__dict__:
            self._committed_reader.close()

    @cached_property
    def _committed_reader(self) -> Consumer:
        return Consumer({**self._settings, "isolation.level": "read_committed"})

    def _topics(self) -> dict[str, int]:
        """Every topic -> number of partitions."""
        try:
            known = self._consumer.list_topics(timeout=TIMEOUT_S).topics
        except KafkaException as error:
            raise self._unreachable(error) from None
        return {name: len(topic.partitions) for name, topic in known.items()}

    def _partitions_of(self, sources: Mapping[str, KafkaSource]) -> dict[str, dict[str, int]]:
        """Source -> topic -> number of partitions."""
        existing = self._topics()
        topics = {name: self._of_source(source, existing) for name, source in sources.items()}
        self._refuse_missing(_once(topics), existing)
        return {name: {topic: existing[topic] for topic in names} for name, names in topics.items()}

    def _of_source(self, source: KafkaSource, existing: Iterable[str]) -> list[str]:
        if source.pattern is None:
            return list(source.named)
        fitting = sorted(name for name in existing if name not in _KAFKAS_OWN and re.fullmatch(source.pattern, name))
        if not fitting:
            need = f"a topic whose name matches; existing topics: {', '.join(_shown(existing)) or 'none'}"
            raise TopicNotFound(path="topics", given=source.pattern, need=need, fix="create one, or correct the pattern in the spec")
        return fitting

    def _asked(
        self, source: KafkaSource, topic: str, edges: Mapping[int, tuple[int, int]], latest: Mapping[int, int], *, begun: bool
    ) -> dict[int, int]:
        where = source.starting_offsets
        if where not in STARTING_OFFSETS:
            return {**latest, **self._since(topic, len(edges), epoch_ms(where))}
        earliest = {number: first for number, (first, _) in edges.items()}
        fallback = dict(latest) if where.endswith("latest") else earliest
        if begun or not where.startswith("committed"):
            return fallback
        group = source.starting_group or source.group_id or self._group
        committed = self._committed(group, topic, edges)
        if where == "committed" and (missing := sorted(edges.keys() - committed.keys())):
            raise _never_committed(group, topic, missing)
        return fallback | committed

    def _committed(self, group: str, topic: str, edges: Mapping[int, tuple[int, int]]) -> dict[int, int]:
        """Partition -> offset that a group has committed; partitions without one are left out. The group does not have to be idle."""
        asked = [TopicPartition(topic, number) for number in edges]
        with self._of_group(group) as consumer:
            partitions = _answer(lambda: consumer.committed(asked, timeout=TIMEOUT_S))
        committed = {place.partition: place.offset for place in partitions if place.offset >= 0}
        raise_all(_gone(topic, number, offset, edges[number]) for number, offset in committed.items() if _outside(offset, edges[number]))
        return committed

    @contextmanager
    def _of_group(self, group: str) -> Iterator[Consumer]:
        """A client that asks for a group's offsets, without being a member."""
        if group == self._group:
            yield self._consumer
            return
        other = Consumer({**self._settings, "group.id": group})
        try:
            yield other
        finally:
            other.close()

    def _since(self, topic: str, partitions: int, time_ms: int) -> dict[int, int]:
        """Partition -> offset of the first record at or after the time; partitions without one are left out."""
        asked = [TopicPartition(topic, number, time_ms) for number in range(partitions)]
        offsets = _answer(lambda: self._consumer.offsets_for_times(asked, timeout=TIMEOUT_S))
        return {place.partition: place.offset for place in offsets if place.offset >= 0}

    def _latest(self, source: KafkaSource, topic: str, edges: Mapping[int, tuple[int, int]]) -> dict[int, int]:
        """Partition -> offset after the last record that the source would read: an open transaction's come after it."""
        if source.isolation_level == "read_uncommitted":
            return {number: latest for number, (_, latest) in edges.items()}
        return {number: self._edges(self._committed_reader, topic, number)[1] for number in edges}

    def _edges(self, consumer: Consumer, topic: str, partition: int) -> tuple[int, int]:
        place = TopicPartition(topic, partition)
        earliest, latest = _answer(lambda: consumer.get_watermark_offsets(place, timeout=TIMEOUT_S))
        return int(earliest), int(latest)

    def _refuse_missing(self, topics: Iterable[str], existing: Mapping[str, int]) -> None:
        missing = [topic for topic in topics if topic not in existing]
        if not missing:
            return
        try:
            denied = {error.path: error for error in hidden(self._access, missing, "read", TIMEOUT_S)}
        except KafkaException as error:
            raise self._unreachable(error) from None
        raise_all(denied.get(one.path, one) for one in (self._missing(topic, existing) for topic in missing))

    def _missing(self, topic: str, known: Iterable[str]) -> TopicNotFound:
        names = _shown(known)
        close = difflib.get_close_matches(topic, names, n=1)
        fix = f"did you mean {close[0]}?" if close else "create the topic, or correct its name in the spec"
        return TopicNotFound(path=f"topic {topic}", need=f"one of: {', '.join(names) or 'none exist'}", fix=fix)

    def _unreachable(self, error: KafkaException) -> BrokersUnreachable | KafkaCredentialsRefused:
        # What the client has heard until now is told by a poll alone.
        self._consumer.poll(0)
        if (refused := self._heard.refused()) is not None:
            return refused
        need = f"a response within {TIMEOUT_S:.0f} s; client error: {error.args[0].str()}"
        return BrokersUnreachable(
            path="brokers", given=self._access.address, need=need, fix="check the address, and that the broker is running"
        )


def _once(topics: Mapping[str, Iterable[str]]) -> dict[str, None]:
    return dict.fromkeys(topic for names in topics.values() for topic in names)


def _shown(topics: Iterable[str]) -> list[str]:
    return sorted(name for name in topics if not name.startswith("__"))


def _outside(offset: int, edges: tuple[int, int]) -> bool:
    earliest, latest = edges
    return not earliest <= offset <= latest


def _gone(topic: str, partition: int, offset: int, edges: tuple[int, int]) -> OffsetGone:
    need = f"an offset from {edges[0]} to {edges[1]}, the range available on the brokers"
    fix = "reset the group's offset, or set startingOffsets to earliest, latest or a time"
    return OffsetGone(path=f"topic {topic}, partition {partition}", given=str(offset), need=need, fix=fix)


def _never_committed(group: str, topic: str, partitions: list[int]) -> NotCommitted:
    need = f"an offset that the group {group} has committed, of each partition"
    fix = (
        "correct startingGroup or groupId, or commit offsets to the group; committed-or-earliest or committed-or-latest starts such"
        " partitions there"
    )
    numbers = ", ".join(map(str, partitions))
    given = f"none of partition{'' if len(partitions) == 1 else 's'} {numbers}"
    return NotCommitted(path=f"topic {topic}", given=given, need=need, fix=fix)


def _unread(topic: str, partition: int, offset: int, edges: tuple[int, int]) -> RecordsGone:
    earliest, latest = edges
    deleted = f"the records {offset:,} to {earliest - 1:,} are gone; the first one is {earliest:,}"
    created_anew = f"the topic ends at {latest:,}: it is not the one that was read up to {offset:,}"
    return RecordsGone(
        path=f"topic {topic}, partition {partition}",
        given=deleted if offset < earliest else created_anew,
        need=f"the records from {offset:,} on, where the checkpoint's last micro-batch ended",
        fix=(
            "raise the topic's retention; to go on without them, start with an empty checkpoint: upgradeMode: stateless and another"
            " restartNonce, or penstock rewind to a time that the topic has"
        ),
    )


def _answer(ask: Callable[[], Answer]) -> Answer:
    """The brokers' response, retried while the error is retriable."""
    until_s = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() not in _ASK_AGAIN or time.monotonic() > until_s:
                raise
            time.sleep(_BACKOFF_S)
