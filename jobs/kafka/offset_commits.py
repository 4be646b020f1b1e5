"""Offsets that a job has read, committed to its consumer group: for tools that show lag by group, and for a start without a checkpoint."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from penstock.jobs.errors import BrokersUnreachable
from penstock.jobs.kafka.brokers import Brokers


class OffsetCommits:
    """Commits after each micro-batch. Only the checkpoint decides where a job resumes, so a failed commit is harmless.

    Args:
        brokers: on behalf of the group; closed with this.
        topics: those of the sources that ask for it.
    """

    def __init__(self, brokers: Brokers, topics: frozenset[str]) -> None:
        self._brokers = brokers
        self._topics = topics

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
        try:
            self._brokers.commit(wanted)
        except BrokersUnreachable as error:
            # The next micro-batch commits what this one could not.
            print(error.render(), file=sys.stderr)

    def close(self) -> None:
        """Closes the clients."""
        self._brokers.close()
