"""Offsets that a job has read, committed to its consumer group: for tools that show lag by group, and for a start without a checkpoint."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from penstock.jobs.errors import BrokersUnreachable
from penstock.jobs.kafka.brokers import Brokers


class OffsetCommits:
    """Commits after each micro-batch. Only the checkpoint decides where a job resumes, so a failed commit is harmless.

    A driver whose lease may be another's commits nothing, because it would set the group back. What remains is one that is frozen between
    this check and the request: the next commit of the other driver corrects it.

    Args:
        brokers: on behalf of the group; closed with this.
        topics: those of the sources that ask for it.
        sure: whether no other driver can have taken over the checkpoint.
    """

    def __init__(self, brokers: Brokers, topics: frozenset[str], sure: Callable[[], bool] = lambda: True) -> None:
        self._brokers = brokers
        self._topics = topics
        self._sure = sure

    def committed(self, ends: Mapping[str, Mapping[str, int]]) -> None:
        """Commits the end offsets of a committed micro-batch.

        Args:
            ends: topic -> partition, as text -> the next offset to read.
        """
        wanted = {
            topic: {int(number): offset for number, offset in partitions.items()}
            for topic, partitions in ends.items()
            if topic in self._topics
        }
        if not self._sure():
            return
        try:
            self._brokers.commit(wanted)
        except BrokersUnreachable as error:
            # The next micro-batch commits what this one could not.
            print(error.render(), file=sys.stderr)

    def close(self) -> None:
        """Closes the clients."""
        self._brokers.close()
