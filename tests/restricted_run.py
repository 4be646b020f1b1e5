"""A local run whose driver has the rights of its own role and no others: on S3, KMS, Secrets Manager and Kafka. What starts the job and
reads its output has all rights.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3

from penstock.infra.environment import Environment
from penstock.infra.job_rights import Brokers, Buckets, statements
from penstock.infra.policies import Statement
from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.spec import load
from penstock.scripts.cli.up import _feed, _job
from penstock.scripts.local import kafka_topics
from penstock.scripts.local.environment import LocalEnvironment
from penstock.scripts.local.job import Job
from penstock.scripts.local.machine import cut
from penstock.scripts.local.run import LocalRun
from penstock.scripts.local.servers.starting import LocalServers
from penstock.scripts.progress import Steps
from tests.emulated.secured_broker import PASSWORD, USER
from tests.enforcing_aws import EnforcingAws
from tests.needed_permissions import Keys
from tests.restricting_broker import RestrictingBroker

# Given the statements of a job's role, those that are enforced.
Change = Callable[[list[Statement]], list[Statement]]
_CLUSTER = "the-brokers/00000000-0000-0000-0000-000000000000-1"


class _AwsByProxy:
    """The emulated AWS as a driver finds it: all of its requests go through the proxy."""

    def __init__(self, local: LocalEnvironment, proxy: EnforcingAws) -> None:
        self._aws = local.aws
        self.endpoint = proxy.endpoint

    def environment(self, base: Mapping[str, str] | None = None) -> dict[str, str]:
        variables = self._aws.environment(base)
        return {name: value.replace(self._aws.endpoint, self.endpoint) for name, value in variables.items()}


class _Restricted:
    """The local environment as a run finds it."""

    def __init__(self, local: LocalEnvironment, proxy: EnforcingAws, broker: RestrictingBroker) -> None:
        self._local = local
        self.aws = _AwsByProxy(local, proxy)
        self.kafka = broker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._local, name)


@dataclass
class RestrictedRun(LocalRun):
    """A run whose driver signs in to the brokers.

    Args:
        secret: ARN of the secret with its user and password.
    """

    secret: str = ""

    def _configuration(self) -> RuntimeConfiguration:
        broker: Any = self.local.kafka
        signs_in = {"brokers": broker.scram, "kafka_security": "sasl-scram", "kafka_secret": self.secret, "kafka_ca": broker.root.pem}
        known = super()._configuration().model_dump()
        return RuntimeConfiguration.model_validate({**known, **signs_in})


@dataclass(frozen=True)
class Rights:
    """What decides on a driver's requests.

    Args:
        aws: on those to S3 and Secrets Manager.
        broker: on those to Kafka.
    """

    aws: EnforcingAws
    broker: RestrictingBroker

    def denied(self) -> list[Any]:
        """All that the driver was denied."""
        return [*self.aws.denied, *sorted(self.broker.decided("DENIED"))]


def job_of(spec: Path) -> Job:
    """A job of this repository, ready to run."""
    return _job(load(spec), [], Steps())


@contextmanager
def restricted_run(
    job: Job, local: LocalEnvironment, folder: Path, change: Change = lambda granted: granted
) -> Iterator[tuple[LocalRun, Rights]]:
    """A run before its driver starts, and what enforces the rights of its role."""
    where = local.environment
    account = f"{where.spec.region}:{where.spec.account}"
    key = f"arn:aws:kms:{account}:key/1"
    local.wait_for_buckets()
    secret = _secret(local)
    buckets, brokers = _buckets(where, key), _brokers(f"arn:aws:kafka:{account}")
    granted = change(statements(job.spec, buckets, brokers, {secret: key}))
    keys = Keys({buckets.checkpoints_arn: key, buckets.output_arn: key}, {secret: key}, where.spec.region)
    with RestrictingBroker(_made(folder / "kafka")) as broker, EnforcingAws(local.aws.endpoint, granted, keys) as aws:
        broker.add_user()
        broker.allow(granted)
        kafka_topics.create(broker.address, job.plan.kafka.topics)
        servers = LocalServers(job.spec, job.app_path, folder / f"{job.name}-servers")
        local.serve(servers)
        restricted: Any = _Restricted(local, aws, broker)
        lines = {name: len(some) for name, some in servers.lines.items()}
        machine = cut(job.plan)
        yield (
            RestrictedRun(job, restricted, machine, folder / job.name, Steps(), lines=lines, connections=servers.urls, secret=secret),
            Rights(aws, broker),
        )


def run_to_its_end(one: LocalRun) -> None:
    """Feeds the job and waits until it has processed everything."""
    if one.bounded:
        _feed(one, one.steps)
    with one.driver() as driver:
        if not one.bounded:
            _feed(one, one.steps)
        one.process(driver)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _secret(local: LocalEnvironment) -> str:
    """ARN of a new secret with the user of the brokers and the password."""
    known = local.aws.environment({})
    client = boto3.client(
        "secretsmanager",
        endpoint_url=local.aws.endpoint,
        region_name=local.environment.spec.region,
        aws_access_key_id=known["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=known["AWS_SECRET_ACCESS_KEY"],
    )
    text = json.dumps({"username": USER, "password": PASSWORD})
    return str(client.create_secret(Name=f"AmazonMSK_{uuid.uuid4().hex}", SecretString=text)["ARN"])


def _buckets(environment: Environment, key: str) -> Buckets:
    names = environment.spec.buckets
    return Buckets(
        checkpoints_arn=f"arn:aws:s3:::{names.checkpoints}",
        output_arn=f"arn:aws:s3:::{names.output}",
        output=names.output,
        key_arn=key,
        service=f"s3.{environment.spec.region}.amazonaws.com",
    )


def _brokers(prefix: str) -> Brokers:
    return Brokers(*(f"{prefix}:{kind}/{_CLUSTER}" for kind in ("cluster", "topic", "group", "transactional-id")))
