"""A local Spark session that reads from an environment's buckets, with the AWS credentials of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from penstock.scripts.checking.session import analyzing
from penstock.scripts.provisioning.aws_access import AwsAccess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Source: Hadoop 3.5, "Authenticating with S3".
_OF_A_USER = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
_OF_A_ROLE = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"


@contextmanager
def reading(aws: AwsAccess) -> Iterator[SparkSession]:
    """Context with a session. Afterwards its JVM ends.

    Args:
        aws: of the environment.

    Raises:
        PenstockError: TOOL-016, TOOL-020, the jars are missing; TOOL-030; TOOL-050.
    """
    settings = dict(_settings(aws))
    with analyzing() as (session, _):
        # Settings of the builder would be arguments of the JVM, which anybody on this machine can see.
        hadoop: Any = session.sparkContext._jsc
        for name, value in settings.items():
            hadoop.hadoopConfiguration().set(f"fs.s3a.{name}", value)
        yield session


def _settings(aws: AwsAccess) -> Iterator[tuple[str, str]]:
    key, secret, token = aws.s3_keys()
    yield "access.key", key
    yield "secret.key", secret
    if token is not None:
        yield "session.token", token
    yield "aws.credentials.provider", _OF_A_USER if token is None else _OF_A_ROLE
    spec = aws.environment.spec
    yield "endpoint.region", spec.region
    if spec.endpoints is not None:
        endpoint = spec.endpoints.of("s3")
        yield "endpoint", endpoint
        yield "path.style.access", "true"
        yield "connection.ssl.enabled", str(endpoint.startswith("https:")).lower()
