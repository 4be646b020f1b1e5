"""A JVM consumer that only counts: the limit for all that read the topic."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.streaming.contestants.place import Place
from benchmarks.streaming.workload import PARTITIONS
from penstock.scripts import layout
from penstock.scripts.process.supervised import SupervisedProcess

_SOURCE = Path(__file__).with_name("Consumer.java")


class RunningConsumer:
    """A consumer that ends by itself.

    Args:
        process: the process.
    """

    def __init__(self, process: SupervisedProcess) -> None:
        self._process = process
        self.failure: Exception | None = None

    @property
    def pid(self) -> int:
        """Of the JVM."""
        return self._process.pid

    def done(self) -> bool:
        """Whether it has read all."""
        return not self._process.alive()


@contextmanager
def consumer(place: Place) -> Iterator[RunningConsumer]:
    """Reads the first topic."""
    topic = next(iter(place.topics.values()))
    jars = layout.kafka_classpath()
    arguments = [place.brokers, topic, str(PARTITIONS), str(place.records)]
    command = ["java", "-XX:+UseParallelGC", "-cp", jars, str(_SOURCE), *arguments]
    with SupervisedProcess(command, env=dict(os.environ), log=place.folder / "consumer.log", cwd=place.folder) as process:
        yield RunningConsumer(process)
