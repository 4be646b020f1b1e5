"""An emulated S3 behind a proxy that loses answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.config import Config

from penstock.scripts.emulation.emulated_aws import EmulatedAws
from tests.jobs.storage.faulty_s3 import FaultyS3

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

BUCKET = "checkpoints"


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatedAws]:
    with EmulatedAws(log=tmp_path_factory.mktemp("aws") / "aws.log") as emulated, pytest.MonkeyPatch.context() as patch:
        for name, value in emulated.environment().items():
            patch.setenv(name, value)
        boto3.client("s3").create_bucket(Bucket=BUCKET)
        yield emulated


@pytest.fixture
def faulty(aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyS3]:
    """The proxy, which every client of a test uses."""
    with FaultyS3(aws.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        yield proxy


@pytest.fixture
def s3(faulty: FaultyS3) -> S3Client:
    return boto3.client("s3", config=Config(retries={"mode": "standard", "max_attempts": 3}))
