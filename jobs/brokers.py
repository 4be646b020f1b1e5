"""What a driver has to know of the brokers before its query starts: the topics' partitions and where to begin."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from jobs.errors import BrokersUnreachable, TopicNotFound
from jobs.spec import KafkaSource
from sizing.errors import raise_all

Answer = TypeVar("Answer")

# A broker takes records of 1 MiB by default (message.max.bytes). One of that size in quarantine is larger: its value is text in JSON, where
# a character may take six bytes. The topic's own max.message.bytes has to allow it.
MAX_RECORD_BYTES = 8 * 1024 * 1024

TIMEOUT_S = 20.0
# Kafka protocol guide, "Error Codes": the retriable ones of a broker that has just started or of a topic that has just been made.
# The pause is the consumer's default retry.backoff.ms.
_ASK_AGAIN = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
}
_BACKOFF_S = 0.1


class Brokers:
    """The brokers, asked on behalf of a consumer group that reads nothing by itself.

    Args:
        address: ``host:port``, several with commas.
        group: the consumer group whose committed offsets count.
    """

    def __init__(self, address: str, group: str) -> None:
        self._address = address
        self._consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": group,
                "enable.auto.commit": False,
                "allow.auto.create.topics": False,
                "log_level": 0,
            }
        )

    def partitions(self, topics: Iterable[str]) -> dict[str, int]:
        """Topic -> number of partitions.

        Raises:
            TopicNotFound: JOB-002, all of those that are missing at once.
            BrokersUnreachable: JOB-001.
        """
        try:
            known = self._consumer.list_topics(timeout=TIMEOUT_S).topics
        except KafkaException as error:
            raise self._unreachable(error) from None
        wanted = list(dict.fromkeys(topics))
        raise_all(self._missing(topic, known) for topic in wanted if topic not in known)
        return {topic: len(known[topic].partitions) for topic in wanted}

    def starting_offsets(self, source: KafkaSource, partitions: int) -> dict[int, int]:
        """Partition -> the first offset to read where there is no checkpoint.

        Raises:
            BrokersUnreachable: JOB-001.
        """
        fallback = source.starting_offsets.removeprefix("committed-or-")
        try:
            committed = self._committed(source.topic, partitions) if source.starting_offsets.startswith("committed") else {}
            return {n: committed[n] if n in committed else self._edge(source.topic, n, fallback) for n in range(partitions)}
        except KafkaException as error:
            raise self._unreachable(error) from None

    def close(self) -> None:
        """Lets go of the brokers."""
        self._consumer.close()

    def _committed(self, topic: str, partitions: int) -> dict[int, int]:
        asked = [TopicPartition(topic, number) for number in range(partitions)]
        found = _answer(lambda: self._consumer.committed(asked, timeout=TIMEOUT_S))
        return {partition.partition: partition.offset for partition in found if partition.offset >= 0}

    def _edge(self, topic: str, partition: int, which: str) -> int:
        place = TopicPartition(topic, partition)
        earliest, latest = _answer(lambda: self._consumer.get_watermark_offsets(place, timeout=TIMEOUT_S))
        return int(earliest if which == "earliest" else latest)

    def _missing(self, topic: str, known: Iterable[str]) -> TopicNotFound:
        there = sorted(name for name in known if not name.startswith("__"))
        close = difflib.get_close_matches(topic, there, n=1)
        fix = f"did you mean {close[0]}?" if close else "create the topic, or mend its name in the spec"
        return TopicNotFound(path=f"topic {topic}", need=f"one of: {', '.join(there) or 'the brokers have none'}", fix=fix)

    def _unreachable(self, error: KafkaException) -> BrokersUnreachable:
        need = f"an answer within {TIMEOUT_S:.0f} s; the client says: {error.args[0].str()}"
        return BrokersUnreachable(path="brokers", given=self._address, need=need, fix="check the address, and that the broker runs")


def _answer(ask: Callable[[], Answer]) -> Answer:
    """What the brokers answer, asked again while they say that they soon can."""
    until_s = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() not in _ASK_AGAIN or time.monotonic() > until_s:
                raise
            time.sleep(_BACKOFF_S)
