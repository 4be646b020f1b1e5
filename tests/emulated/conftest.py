from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.errors import ProviderNotFound
from penstock.scripts.local import class_data
from penstock.scripts.local.environment import LocalEnvironment
from penstock.scripts.local.kafka_broker import KafkaBroker
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning import stacks
from penstock.scripts.provisioning.terraform import Applied, Terraform
from tests.emulated import clicks

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """A job's spec, beside nothing of this repo."""
    return clicks.written(tmp_path / "a team's jobs")


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """Where `up` has its folders, so that one sees what it leaves."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    return folder


@dataclass(frozen=True)
class AppliedStack:
    """The checkpoints stack, applied to an emulated AWS."""

    aws: EmulatedAws
    environment: Environment
    terraform: Terraform
    applied: Applied
    s3: S3Client


@pytest.fixture(scope="session")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatedAws]:
    with EmulatedAws(log=tmp_path_factory.mktemp("aws") / "aws.log") as running:
        yield running


@pytest.fixture(scope="session", autouse=True)
def _classes_of_kafka() -> None:
    """Brokers start in half the CPU time, also those of commands."""
    class_data.kafka().make(Steps())


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker for the tests of a file."""
    folder = tmp_path_factory.mktemp("kafka")
    with KafkaBroker(folder=folder / "data", log=folder / "kafka.log") as running:
        yield running


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalEnvironment]:
    """What a local run needs, with a broker and an emulator that a test may kill."""
    folder = tmp_path / "local"
    folder.mkdir()
    with LocalEnvironment(load("local"), folder=folder, aws_port=0, kafka_port=0) as environment:
        yield environment


def terraform(aws: EmulatedAws, environment: Environment, folder: Path) -> Terraform:
    """The checkpoints stack, synthesized and ready to be applied; what is missing for that skips the test."""
    for tool in ("terraform", "node"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not in PATH")
    variables = aws.environment(os.environ)
    (stack,) = stacks.synthesize(environment, folder, only=["checkpoints"], base=variables)
    made = Terraform(stack, environment=variables)
    try:
        made.init()
    except ProviderNotFound as error:
        pytest.skip(error.render())
    return made


@pytest.fixture(scope="session")
def checkpoints(aws: EmulatedAws, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppliedStack]:
    """Applied once for all tests, and destroyed after them, which leaves nothing."""
    environment = load("local").at(aws.endpoint)
    made = terraform(aws, environment, tmp_path_factory.mktemp("checkpoints"))
    own = aws.environment()
    s3 = boto3.client(
        "s3",
        endpoint_url=aws.endpoint,
        region_name=own["AWS_REGION"],
        aws_access_key_id=own["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=own["AWS_SECRET_ACCESS_KEY"],
    )
    applied = made.apply()
    yield AppliedStack(aws, environment, made, applied, s3)
    # An unprotected bucket goes with all that it holds.
    s3.put_object(Bucket=environment.spec.buckets.output, Key="left/behind", Body=b"x")
    destroyed = made.destroy()
    assert destroyed.count("delete") == applied.count("create")
    # Other tests of the session have buckets of their own on this emulated AWS.
    buckets = environment.spec.buckets
    left = {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}
    assert not left & {buckets.checkpoints, buckets.output, *([buckets.access_logs] if buckets.access_logs else [])}
