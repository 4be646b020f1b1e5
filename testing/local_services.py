"""What ``penstock up`` runs jobs on, for tests: emulated AWS with the environment's buckets, an Apache Kafka broker, and databases."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import boto3

from penstock.jobs.local.recording import Record
from penstock.jobs.spec import load
from penstock.scripts.local import kafka_topics
from penstock.scripts.local.environment import LocalEnvironment
from penstock.scripts.local.servers.starting import LocalServers

_BROKERS = "KAFKA_BOOTSTRAP_SERVERS"
# As in a record of Kafka: None is a tombstone.
Value = Mapping[str, object] | str | bytes | None


class LocalServices:
    """The services of an environment that runs.

    Args:
        environment: the environment.
        folder: for what is started later.
        root: where paths of specs begin.
    """

    def __init__(self, environment: LocalEnvironment, folder: Path, root: Path) -> None:
        self._environment = environment
        self._folder = folder
        self._root = root
        self._topics: dict[str, int] = {}

    @property
    def brokers(self) -> str:
        """``host:port`` of the broker."""
        return self._environment.kafka.address

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables that direct the AWS CLI, boto3 and a client of Kafka to these services."""
        return {**self._environment.aws.environment(), _BROKERS: self.brokers}

    @property
    def checkpoints(self) -> str:
        """Name of the bucket of checkpoints."""
        return self._environment.environment.spec.buckets.checkpoints

    @property
    def output(self) -> str:
        """Name of the bucket of file sinks."""
        return self._environment.environment.spec.buckets.output

    def client(self, service: str) -> Any:
        """A boto3 client of a service of the emulated AWS, such as ``s3``."""
        own = self._environment.aws.environment()
        make: Any = boto3.client
        return make(
            service,
            endpoint_url=self._environment.aws.endpoint,
            region_name=own["AWS_REGION"],
            aws_access_key_id=own["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=own["AWS_SECRET_ACCESS_KEY"],
        )

    def connections(self, spec: str | Path, app_path: Sequence[str | Path] = ()) -> dict[str, str]:
        """Starts the databases and endpoints of a job's ``local.connections``, filled by its own functions; they end with the tests.

        Args:
            spec: path of the spec, from pytest's root folder.
            app_path: folders of its functions, besides those of the spec and pytest's root folder.

        Returns:
            Connection -> URL, credentials included.

        Raises:
            PenstockError: what is wrong in the spec; RUN-030 to RUN-033.
        """
        read = load(self._root / spec)
        folders = [read.path.parent, *(self._root / folder for folder in (*app_path, "."))]
        servers = LocalServers(read, folders, self._folder / read.job.metadata.name)
        return self._environment.serve(servers).urls

    def write(self, topic: str, *values: Value, partitions: int = 1) -> None:
        """Writes records to a topic, in this order; mappings as JSON.

        Args:
            topic: created by the first call.
            values: of the records.
            partitions: of the topic, when it is created.

        Raises:
            PenstockError: RUN-012, RUN-013.
        """
        if topic not in self._topics:
            kafka_topics.create(self.brokers, {topic: partitions})
            self._topics[topic] = partitions
        records = [Record(value=_bytes(value)) for value in values]
        self._feeder.feed(topic, self._topics[topic], records, lambda _: None)

    def read(self, topic: str) -> list[bytes | None]:
        """The values of all records of a topic, by partition and offset."""
        return [record.value for record in kafka_topics.recorded(kafka_topics.read(self.brokers, topic), frozenset())]

    @cached_property
    def _feeder(self) -> kafka_topics.Feeder:
        return kafka_topics.Feeder(self.brokers)


def _bytes(value: Value) -> bytes | None:
    if isinstance(value, Mapping):
        return json.dumps(value).encode()
    return value.encode() if isinstance(value, str) else value
