"""What a measured job runs beside: a broker with its topics, an emulated S3, and the local servers of its connections."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cached_property
from math import lcm
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3

from penstock.jobs.spec import SpecFile
from penstock.jobs.spec.requested_topics import asked_topics
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.local import kafka_topics
from penstock.scripts.local.files import make_buckets
from penstock.scripts.local.kafka_broker import KafkaBroker
from penstock.scripts.local.servers.starting import LocalServers
from penstock.scripts.profiling.backlog_input import Backlog, TopicInput
from penstock.scripts.progress import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mypy_boto3_s3 import S3Client

CHECKPOINTS, OUTPUT = "penstock-profile-checkpoints", "penstock-profile-output"
# Of the topics that the job writes.
_WRITTEN_PARTITIONS = 4


class MeasuredPlace:
    """A context manager: everything of it ends with it.

    Args:
        spec: of the job.
        app_path: folders of its app.
        folder: an existing folder.
    """

    def __init__(self, spec: SpecFile, app_path: Sequence[Path], folder: Path) -> None:
        self._spec = spec
        self.kafka = KafkaBroker(folder=folder / "kafka", log=folder / "kafka.log")
        self.aws = EmulatedAws(log=folder / "aws.log")
        self.servers = LocalServers(spec, app_path, folder / "servers")
        self._held = ExitStack()

    def __enter__(self) -> MeasuredPlace:
        with ExitStack() as held:
            held.enter_context(self.kafka)
            held.enter_context(self.aws)
            held.enter_context(self.servers)
            for bucket in (CHECKPOINTS, OUTPUT):
                self.s3.create_bucket(Bucket=bucket)
            make_buckets(self.s3, self._spec)
            self._held = held.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._held.close()

    @property
    def s3(self) -> S3Client:
        """A client of the emulated S3."""
        own = self.aws.environment()
        keys = {"aws_access_key_id": own["AWS_ACCESS_KEY_ID"], "aws_secret_access_key": own["AWS_SECRET_ACCESS_KEY"]}
        return boto3.client("s3", endpoint_url=self.aws.endpoint, region_name=self.aws.region, **keys)  # type: ignore[call-overload, no-any-return]

    def check(self) -> None:
        """Returns while all of it runs.

        Raises:
            PenstockError: RUN-003, RUN-010 or RUN-030.
        """
        self.aws.check()
        self.kafka.check()
        self.servers.check()

    def create_topics(self, slots: Sequence[int]) -> int:
        """Creates the job's topics, those that it reads with a multiple of all numbers of slots as partitions. Returns how many those have.

        Args:
            slots: the numbers of slots of the runs.

        Raises:
            TopicsNotCreated: RUN-012.
        """
        partitions = lcm(*slots)
        read = {topic: partitions for source in self._spec.job.spec.kafka_sources.values() for topic in source.named}
        written = dict.fromkeys(self._spec.job.written_topics(), _WRITTEN_PARTITIONS)
        settings = {name: asked.config for name, asked in asked_topics([self._spec]).items()}
        kafka_topics.create(self.kafka.address, {**written, **read}, settings)
        return partitions

    def feed(self, given: Sequence[TopicInput], backlog: Backlog, repetitions: range, partitions: int, step: Step) -> None:
        """Writes some repetitions of the inputs to their topics.

        Raises:
            InputFailed: RUN-013.
        """
        for one in given:
            records = backlog.repeated(one, repetitions)
            self._feeder.feed(one.topic, partitions, records, _shown(step, one.topic))

    @cached_property
    def _feeder(self) -> kafka_topics.Feeder:
        return kafka_topics.Feeder(self.kafka.address)


def _shown(step: Step, topic: str) -> Callable[[int], None]:
    return lambda count: step.watch(f"{count:,} records into {topic}")
