"""A JVM consumer that only counts: the limit for all that read the topic."""

from __future__ import annotations

import os
import subprocess
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

    @property
    def pid(self) -> int:
        """Of the JVM."""
        return self._process.pid

    def done(self) -> bool:
        """Whether it has ended.

        Raises:
            RuntimeError: it has failed.
        """
        if self._process.alive():
            return False
        if self._process.returncode != 0:
            raise RuntimeError(self._process.tail())
        return True


@contextmanager
def consumer(place: Place) -> Iterator[RunningConsumer]:
    """Reads the first topic."""
    topic = next(iter(place.topics.values()))
    jars = layout.kafka_classpath()
    # Before it starts: its CPU time is not the compiler's.
    subprocess.run(["javac", "-cp", jars, "-d", place.folder, _SOURCE], check=True)
    arguments = [place.brokers, topic, str(PARTITIONS), str(place.records)]
    command = ["java", "-XX:+UseParallelGC", "-cp", os.pathsep.join((jars, str(place.folder))), "Consumer", *arguments]
    with SupervisedProcess(command, env=dict(os.environ), log=place.folder / "consumer.log", cwd=place.folder) as process:
        yield RunningConsumer(process)
