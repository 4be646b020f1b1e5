"""Offsets that a job has read, committed to consumer groups, its own or those of its sources: for tools that show lag by group, and for a
start without a checkpoint.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from penstock.jobs.kafka.brokers import Brokers
from penstock.jobs.kafka.errors import BrokersUnreachable, KafkaCredentialsRefused


@dataclass(frozen=True)
class GroupTopics:
    """A consumer group, and the topics whose offsets are committed to it.

    Args:
        brokers: on behalf of the group.
        topics: their names.
    """

    brokers: Brokers
    topics: frozenset[str]


class OffsetCommits:
    """Commits after each micro-batch. Only the checkpoint decides where a job resumes, so a failed commit is harmless.

    A driver whose lease may be another's commits nothing, because it would set the group back. What remains is one that is frozen between
    this check and the request: the next commit of the other driver corrects it.

    Args:
        groups: with the topics of the sources that ask for it; their clients are closed with this.
        sure: whether no other driver can have taken over the checkpoint.
    """

    def __init__(self, groups: Sequence[GroupTopics], sure: Callable[[], bool] = lambda: True) -> None:
        self._groups = groups
        self._sure = sure

    def committed(self, ends: Mapping[str, Mapping[str, int]]) -> None:
        """Commits the end offsets of a committed micro-batch.

        Args:
            ends: topic -> partition, as text -> the next offset to read.
        """
        if not self._sure():
            return
        for group in self._groups:
            wanted = {topic: {int(number): offset for number, offset in ends[topic].items()} for topic in ends if topic in group.topics}
            try:
                group.brokers.commit(wanted)
            except (BrokersUnreachable, KafkaCredentialsRefused) as error:
                # The next micro-batch commits what this one could not.
                print(error.render(), file=sys.stderr)

    def close(self) -> None:
        """Closes the clients."""
        for group in self._groups:
            group.brokers.close()


class JointCommits:
    """Commits of several queries to the same consumer groups: of each partition what all queries that read its topic have committed.

    Args:
        commits: of the groups.
        readers: query -> the topics that it reads.
    """

    def __init__(self, commits: OffsetCommits, readers: Mapping[str, frozenset[str]]) -> None:
        self._commits = commits
        self._readers = readers
        self._ends: dict[str, Mapping[str, Mapping[str, int]]] = {query: {} for query in readers}
        self._one_at_a_time = threading.Lock()

    def committed(self, query: str, ends: Mapping[str, Mapping[str, int]]) -> None:
        """Takes the end offsets of a query's committed micro-batch, see `OffsetCommits.committed`.

        A topic is committed once each query that reads it has committed a micro-batch since the driver's start.
        """
        with self._one_at_a_time:
            self._ends[query] = ends
            self._commits.committed({topic: least for topic in ends if (least := self._least(topic))})

    def _least(self, topic: str) -> dict[str, int]:
        known = [self._ends[query].get(topic, {}) for query, topics in self._readers.items() if topic in topics]
        common = set.intersection(*(set(partitions) for partitions in known)) if known else set()
        return {number: min(partitions[number] for partitions in known) for number in sorted(common)}
