"""The embedded default: an emulated AWS, a real broker, and the environment's stacks applied with Terraform, all on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import boto3

from infra.environment import Environment
from scripts import stacks
from scripts.emulated_aws import EmulatedAws
from scripts.kafka_broker import KafkaBroker
from scripts.terraform import Applied, Terraform

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class LocalEnvironment:
    """Everything around a job.

    Args:
        environment: the environment file; its endpoints become those of the emulator.
        folder: an empty folder for data and logs.
        aws_port: of the emulated AWS, 0 for a free one.
        kafka_port: of the broker, 0 for a free one.
        progress: called with each resource that Terraform has finished.
    """

    def __init__(
        self, environment: Environment, *, folder: Path, aws_port: int, kafka_port: int, progress: Callable[[str], None]
    ) -> None:
        self._asked = environment
        self._folder = folder
        self._progress = progress
        self.aws = EmulatedAws(log=folder / "aws.log", port=aws_port, account=environment.spec.account, region=environment.spec.region)
        self.kafka = KafkaBroker(folder=folder / "kafka", log=folder / "kafka.log", port=kafka_port)
        self._held = ExitStack()
        self._applied: Future[Applied] | None = None

    def __enter__(self) -> LocalEnvironment:
        try:
            self._start()
        except BaseException:
            self._held.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._held.close()

    @cached_property
    def environment(self) -> Environment:
        """The environment with the emulator's endpoint."""
        return self._asked.at(self.aws.endpoint)

    @cached_property
    def s3(self) -> S3Client:
        """A client of the emulated S3."""
        own = self.aws.environment()
        return boto3.client(
            "s3",
            endpoint_url=self.aws.endpoint,
            region_name=own["AWS_REGION"],
            aws_access_key_id=own["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=own["AWS_SECRET_ACCESS_KEY"],
        )

    def applied(self) -> Applied:
        """What Terraform has applied; waits until it has.

        Raises:
            PenstockError: INF-..., RUN-005 to RUN-009.
        """
        assert self._applied is not None
        return self._applied.result()

    def check(self) -> None:
        """Nothing while the emulator and the broker run.

        Raises:
            EmulatorDied: RUN-003.
            BrokerDied: RUN-010.
        """
        self.aws.check()
        self.kafka.check()

    def _start(self) -> None:
        # The stacks need the emulator alone, and Terraform mostly waits: the broker starts and topics are filled meanwhile.
        pool = self._held.enter_context(_Background())
        broker = pool.submit(self.kafka.start)
        self._held.callback(self.kafka.stop)
        self._held.enter_context(self.aws)
        self._applied = pool.submit(self._apply)
        broker.result()

    def _apply(self) -> Applied:
        (stack,) = stacks.synthesize(self.environment, self._folder / "cdktf.out", base=self.aws.environment(os.environ))
        return Terraform(stack, environment=self.aws.environment(os.environ)).apply(self._progress)


class _Background(ThreadPoolExecutor):
    """Threads whose work is dropped, not waited for, where it has not begun when the environment ends."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.shutdown(wait=error is None, cancel_futures=True)
