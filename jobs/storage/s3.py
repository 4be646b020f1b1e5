"""S3 as used by a job: one way to create a client, wherever the job runs.

Endpoint, region and credentials come from the process's environment as boto3 reads it: pod identity in a cluster, the emulator's values
on a developer's machine. None of them is in a spec.
"""

from __future__ import annotations

import os
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from penstock.jobs.storage.errors import BucketUnreachable

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# S3 returns 503 while it partitions a prefix for more traffic; botocore's standard mode backs off and retries.
_ATTEMPTS = 10
# Variables that boto3 reads, with their values.
_Settings: TypeAlias = tuple[tuple[str, str], ...]
# Threads may share clients, but not the session that makes them. Source: boto3's documentation, "Session reference", "Multithreading or
# multiprocessing with sessions".
_MAKING_ONE = Lock()


def shared_client() -> S3Client:
    """The client of this process, for all of its threads and tasks: creating one takes longer than most of its requests, and each has
    connections of its own. A forked process, or one whose environment has changed since, gets another one.
    """
    return _client_of(*_place())


@lru_cache(maxsize=1)
def _client_of(process: int, settings: _Settings) -> S3Client:
    return client(attempts=_ATTEMPTS, timeout_s=60)


def _place() -> tuple[int, _Settings]:
    """What a client and a session hold for: this process, with the environment that it has now."""
    return os.getpid(), tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("AWS_")))


def client(*, attempts: int, timeout_s: float) -> S3Client:
    """A client with retries, for what needs other limits than those of `shared_client`.

    Args:
        attempts: of each request, at least 1.
        timeout_s: until an attempt without an answer is given up, in seconds.
    """
    config = Config(
        retries={"mode": "standard", "max_attempts": attempts},
        connect_timeout=min(10, timeout_s),
        read_timeout=timeout_s,
        max_pool_connections=16,
    )
    with _MAKING_ONE:
        return _session_of(*_place()).client("s3", config=config)


@lru_cache(maxsize=1)
def _session_of(process: int, settings: _Settings) -> boto3.session.Session:
    """The session of all clients: it reads S3's model once, which takes 0.2 s of CPU time. It is not boto3's default session, which others
    use without the lock.
    """
    return boto3.session.Session()


def place_of(uri: str) -> tuple[str, str]:
    """Bucket and folder of a checkpoint.

    Args:
        uri: ``s3a://bucket/folder``.

    Raises:
        BucketUnreachable: JOB-009, it is none.
    """
    parts = urlsplit(uri)
    if parts.scheme not in ("s3", "s3a") or not parts.netloc or not parts.path.strip("/"):
        raise BucketUnreachable(path="checkpoint", given=uri, need="s3a://bucket/folder", fix="specify a folder in a bucket")
    return parts.netloc, parts.path.strip("/")


def error_code(error: ClientError) -> str:
    """S3's error code, such as ``NoSuchKey``."""
    return str(error.response.get("Error", {}).get("Code", ""))


def missing(s3: S3Client, bucket: str, key: str, error: ClientError) -> bool:
    """Whether a request failed because the object does not exist.

    S3 tells only those who may list the bucket, and denies the request to others. A job may list its own folders, which is a condition on
    the prefix that such a request does not meet; so a LIST decides.
    Source: Amazon S3 API Reference, GetObject, "Permissions".
    """
    if error_code(error) in ("NoSuchKey", "404"):
        return True
    if error_code(error) not in ("AccessDenied", "403"):
        return False
    listed = s3.list_objects_v2(Bucket=bucket, Prefix=key, MaxKeys=1).get("Contents", [])
    return not any(item["Key"] == key for item in listed)
