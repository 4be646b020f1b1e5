"""The embedded default: an emulated AWS, a real broker, and stacks applied with Terraform, all on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import boto3

from penstock.infra.environment import Environment
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.local.kafka_broker import KafkaBroker
from penstock.scripts.local.servers.starting import LocalServers
from penstock.scripts.provisioning import stacks
from penstock.scripts.provisioning.terraform import Applied, Terraform

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# The stack that jobs need.
_NEEDED = "checkpoints"
# How often the emulator and the broker are checked while waiting for something else.
_LOOK_S = 1.0


class LocalEnvironment:
    """The environment of a local run.

    Args:
        environment: the environment file; its endpoints are replaced by the emulator's.
        folder: an empty folder for data and logs.
        aws_port: of the emulated AWS, 0 for a free one.
        kafka_port: of the broker, 0 for a free one.
        all_stacks: whether every stack of the environment is applied, rather than only the one that jobs need.
        kafka_host: the IP address of this machine on which the broker listens.
    """

    def __init__(
        self,
        environment: Environment,
        *,
        folder: Path,
        aws_port: int,
        kafka_port: int,
        all_stacks: bool = False,
        kafka_host: str = "127.0.0.1",
    ) -> None:
        self._asked = environment
        self._folder = folder
        self._aws_port = aws_port
        self._all_stacks = all_stacks
        self.kafka = KafkaBroker(folder=folder / "kafka", log=folder / "kafka.log", port=kafka_port, host=kafka_host)
        self._held = ExitStack()
        self._servers: list[LocalServers] = []
        self._applying: Future[dict[str, Applied]] | None = None
        self._terraform: Terraform | None = None
        self._applied: dict[str, Terraform] = {}
        self._to_come: set[str] | None = None
        self._ending = threading.Event()
        self._resource_done = threading.Semaphore(0)

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

    def serve(self, servers: LocalServers) -> LocalServers:
        """Starts the servers of a job; they end with the environment.

        Raises:
            PenstockError: RUN-030 to RUN-033.
        """
        self._servers.append(self._held.enter_context(servers))
        return servers

    def wait_for_buckets(self) -> None:
        """Waits until both buckets exist with their keys, policies and versioning.

        Their lifecycle rules may still be pending: the provider waits a minute for S3 to propagate them, and no job needs them to start.

        Raises:
            PenstockError: as `applied`.
        """
        assert self._applying is not None
        while self._to_come != set() and not self._applying.done():
            self.check()
            self._resource_done.acquire(timeout=_LOOK_S)
        if self._applying.done():
            self.applied()

    def applied(self) -> dict[str, Applied]:
        """What Terraform applied, by stack; waits until it has.

        Raises:
            PenstockError: RUN-005 to RUN-009, or RUN-003 and RUN-010 for an emulator or a broker that died meanwhile.
        """
        assert self._applying is not None
        while True:
            self.check()
            with contextlib.suppress(TimeoutError):
                return self._applying.result(timeout=_LOOK_S)

    def differing(self) -> list[str]:
        """The applied stacks that a second plan would change.

        Raises:
            PenstockError: RUN-005, RUN-007 to RUN-009.
        """
        return [name for name, terraform in self._applied.items() if terraform.plan()]

    def check(self) -> None:
        """Returns while the emulator, the broker and the jobs' servers run.

        Raises:
            EmulatorDied: RUN-003.
            BrokerDied: RUN-010.
            LocalServerDied: RUN-030.
        """
        self.aws.check()
        self.kafka.check()
        for servers in self._servers:
            servers.check()

    def _start(self) -> None:
        # The stacks only need the emulator, and Terraform mostly waits: the broker starts and topics are filled meanwhile.
        pool = self._held.enter_context(_Background())
        broker = pool.submit(self.kafka.start)
        self._held.callback(self.kafka.stop)
        if self._all_stacks:
            # The emulated MSK returns the address of this broker.
            broker.result()
        self.aws = self._held.enter_context(self._emulated_aws())
        self._applying = pool.submit(self._apply)
        self._held.callback(self._stop_terraform)
        broker.result()

    def _emulated_aws(self) -> EmulatedAws:
        spec = self._asked.spec
        brokers = self.kafka.address if self._all_stacks else None
        return EmulatedAws(log=self._folder / "aws.log", port=self._aws_port, account=spec.account, region=spec.region, brokers=brokers)

    def _apply(self) -> dict[str, Applied]:
        """Applies what jobs need first."""
        only = () if self._all_stacks else (_NEEDED,)
        variables = self.aws.environment(os.environ)
        synthesized = stacks.synthesize(self.environment, self._folder / "cdktf.out", only=only, base=variables)
        done: dict[str, Applied] = {}
        for stack in sorted(synthesized, key=lambda folder: folder.name != _NEEDED):
            if stack.name == _NEEDED:
                self._to_come = _needed_by_jobs(stack)
            done[stack.name] = self._apply_one(Terraform(stack, environment=variables))
        return done

    def _apply_one(self, terraform: Terraform) -> Applied:
        if self._ending.is_set():
            raise CancelledError
        self._terraform = terraform
        applied = terraform.apply(self._done)
        self._applied[terraform.folder.name] = terraform
        return applied

    def _done(self, address: str) -> None:
        assert self._to_come is not None
        self._to_come.discard(address)
        self._resource_done.release()

    def _stop_terraform(self) -> None:
        self._ending.set()
        if self._terraform is not None:
            self._terraform.stop()


def _needed_by_jobs(stack: Path) -> set[str]:
    """Addresses of all resources that must exist before a job writes."""
    resources: dict[str, dict[str, object]] = json.loads((stack / "cdk.tf.json").read_text(encoding="utf-8"))["resource"]
    return {f"{kind}.{name}" for kind, named in resources.items() for name in named if kind != "aws_s3_bucket_lifecycle_configuration"}


class _Background(ThreadPoolExecutor):
    """Threads whose pending work is dropped rather than waited for when the environment ends."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.shutdown(wait=error is None, cancel_futures=True)
