"""Fixtures of the jobs that are killed: a broker, a client of the emulated S3, and a job on both."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest

from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.local import class_data
from penstock.scripts.local.kafka_broker import KafkaBroker
from penstock.scripts.progress import Steps
from tests.chaos.killed_job import CHECKPOINTS, OUTPUT, Job, NewJob
from tests.chaos.ledger import Ledger

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    folder = tmp_path_factory.mktemp("kafka")
    class_data.kafka().make(Steps())
    with KafkaBroker(folder=folder / "data", log=folder / "kafka.log") as running:
        yield running


@pytest.fixture(scope="session")
def s3(aws: EmulatedAws) -> S3Client:
    own = aws.environment()
    client = boto3.client(
        "s3",
        endpoint_url=aws.endpoint,
        region_name=own["AWS_REGION"],
        aws_access_key_id=own["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=own["AWS_SECRET_ACCESS_KEY"],
    )
    for bucket in (CHECKPOINTS, OUTPUT):
        client.create_bucket(Bucket=bucket)
    return client


@pytest.fixture
def new_job(aws: EmulatedAws, kafka: KafkaBroker, s3: S3Client, tmp_path: Path) -> NewJob:
    class_data.make(Steps())

    def make(app: str) -> Job:
        return Job(f"c{os.urandom(4).hex()}", app, aws, kafka, s3, tmp_path)

    return make


@pytest.fixture
def ledger(request: pytest.FixtureRequest) -> Ledger:
    """What the test has counted, for `./scripts/chaos`."""
    return Ledger(request.node.user_properties)


@pytest.fixture
def chaos_seed(request: pytest.FixtureRequest) -> int:
    """What is killed at random, and when."""
    return int(request.config.getoption("--chaos-seed"))


@pytest.fixture
def chaos_kills(request: pytest.FixtureRequest) -> int:
    """How many kills at random an exactly-once sink gets."""
    return 100 if request.config.getoption("--full") else 10
