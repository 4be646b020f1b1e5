"""A local run whose driver reaches S3 under its own role's statements; what starts the job and reads its output has all rights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.infra.environment import Environment
from penstock.infra.job_rights import Buckets, statements
from penstock.infra.policies import Statement
from penstock.jobs.spec import load
from penstock.scripts.cli.up import _feed, _job
from penstock.scripts.local import kafka_topics
from penstock.scripts.local.environment import LocalEnvironment
from penstock.scripts.local.job import Job
from penstock.scripts.local.machine import cut
from penstock.scripts.local.run import LocalRun
from penstock.scripts.local.servers.starting import LocalServers
from penstock.scripts.progress import Steps
from tests.enforcing_s3 import EnforcingS3

# Given the statements of a job's role, those that are enforced.
Change = Callable[[list[Statement]], list[Statement]]


class _AwsByProxy:
    """The emulated AWS as a driver finds it: all of its requests go through the proxy."""

    def __init__(self, local: LocalEnvironment, proxy: EnforcingS3) -> None:
        self._aws = local.aws
        self.endpoint = proxy.endpoint

    def environment(self, base: Mapping[str, str] | None = None) -> dict[str, str]:
        variables = self._aws.environment(base)
        return {name: value.replace(self._aws.endpoint, self.endpoint) for name, value in variables.items()}


class _LocalByProxy:
    """The local environment as a run finds it."""

    def __init__(self, local: LocalEnvironment, proxy: EnforcingS3) -> None:
        self._local = local
        self.aws = _AwsByProxy(local, proxy)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._local, name)


def job_of(spec: Path) -> Job:
    """A job of this repository, ready to run."""
    return _job(load(spec), [], Steps())


@contextmanager
def restricted_run(
    job: Job, local: LocalEnvironment, folder: Path, change: Change = lambda granted: granted
) -> Iterator[tuple[LocalRun, EnforcingS3]]:
    """A run before its driver starts, and the proxy that enforces the rights of its role."""
    kafka_topics.create(local.kafka.address, job.plan.kafka.topics)
    granted = change(statements(job.spec, _buckets(local.environment), None))
    servers = LocalServers(job.spec, job.app_path, folder / f"{job.name}-servers")
    local.serve(servers)
    local.wait_for_buckets()
    lines = {name: len(some) for name, some in servers.lines.items()}
    with EnforcingS3(local.aws.endpoint, granted) as proxy:
        by_proxy: Any = _LocalByProxy(local, proxy)
        yield LocalRun(job, by_proxy, cut(job.plan), folder / job.name, Steps(), lines=lines, connections=servers.urls), proxy


def run_to_its_end(one: LocalRun) -> None:
    """Feeds the job and waits until it has processed everything."""
    if one.bounded:
        _feed(one, one.steps)
    with one.driver() as driver:
        if not one.bounded:
            _feed(one, one.steps)
        one.process(driver)


def _buckets(environment: Environment) -> Buckets:
    names = environment.spec.buckets
    return Buckets(
        checkpoints_arn=f"arn:aws:s3:::{names.checkpoints}",
        output_arn=f"arn:aws:s3:::{names.output}",
        key_arn=f"arn:aws:kms:{environment.spec.region}:{environment.spec.account}:key/1",
        service=f"s3.{environment.spec.region}.amazonaws.com",
    )
