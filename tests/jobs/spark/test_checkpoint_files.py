"""The checkpoint file manager of jobs/jvm: a file that must not exist is created by S3's own condition."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from penstock.jobs.driver.session import FIXED
from penstock.jobs.storage.conditional import undecided_write
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.sizing.lint.spark_conf import CONDITIONAL_MANAGER
from tests.jobs.spark.s3_proxy import CUT_AFTER, CUT_BEFORE, Request, S3Proxy

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_MANAGER = FIXED["spark.sql.streaming.checkpointFileManagerClass"]
_EXISTS = "org.apache.hadoop.fs.FileAlreadyExistsException"
# Source: proc(5), /proc/net/tcp, and the kernel's enum of include/net/tcp_states.h.
_ESTABLISHED = "01"
# Few and quick: what s3a and the SDK do between two attempts is theirs.
_IMPATIENT = {"attempts.maximum": "2", "retry.limit": "2", "retry.interval": "10ms", "retry.throttle.interval": "10ms"}


class Files:
    """Checkpoint file managers on a bucket of their own, whose requests go through a proxy."""

    def __init__(self, session: SparkSession, s3: S3Client, proxy: S3Proxy) -> None:
        self.s3 = s3
        self.proxy = proxy
        self.bucket = f"files-{uuid.uuid4().hex[:8]}"
        s3.create_bucket(Bucket=self.bucket)
        self._jvm = cast(Any, session._jvm)
        self.conf = self._jvm.org.apache.hadoop.conf.Configuration(session._jsparkSession.sessionState().newHadoopConf())
        for name, value in {**_IMPATIENT, "endpoint": proxy.endpoint}.items():
            self.conf.set(f"fs.s3a.bucket.{self.bucket}.{name}", value)

    def path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"s3a://{self.bucket}/checkpoint/{name}")

    def manager(self, path: Any = None) -> Any:
        """As Spark makes one."""
        created = self._jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.create
        return created(path or self.path("offsets"), self.conf)

    def written(self, content: bytes, name: str = "offsets/0", *, overwrite: bool = False) -> Any:
        """A stream with the content, not closed yet."""
        stream = self.manager().createAtomic(self.path(name), overwrite)
        stream.write(bytearray(content))
        return stream

    def content(self, name: str = "offsets/0") -> bytes:
        return self.s3.get_object(Bucket=self.bucket, Key=f"checkpoint/{name}")["Body"].read()

    def names(self) -> list[str]:
        return [one["Key"] for one in self.s3.list_objects_v2(Bucket=self.bucket).get("Contents", [])]

    def connections(self) -> int:
        """Open ones to the proxy, of this JVM and others."""
        port = f":{urlsplit(self.proxy.endpoint).port:04X}"
        rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text("ascii").splitlines()[1:]]
        return sum(row[2].endswith(port) and row[3] == _ESTABLISHED for row in rows)

    def answer(self, *answers: int | None) -> None:
        """The next conditional writes are answered so, and those after them by S3."""
        left = iter(answers)
        self.proxy.rule = lambda request: next(left, None) if request.conditional else None


@pytest.fixture(scope="module")
def proxy(aws: EmulatedAws) -> Iterator[S3Proxy]:
    with S3Proxy(aws.endpoint) as proxy:
        yield proxy


@pytest.fixture
def files(session: SparkSession, s3: S3Client, proxy: S3Proxy) -> Iterator[Files]:
    made = Files(session, s3, proxy)
    proxy.rule = lambda request: None
    proxy.clear()
    yield made
    proxy.rule = lambda request: None


def failure(stream: Any) -> tuple[str, str]:
    """Class and message of what closing a stream throws."""
    with pytest.raises(Py4JJavaError) as raised:
        stream.close()
    thrown: Any = raised.value.java_exception
    return thrown.getClass().getName(), thrown.getMessage()


def test_spark_is_given_this_class(files: Files) -> None:
    assert files.manager().getClass().getName() == _MANAGER == CONDITIONAL_MANAGER


def test_the_managers_of_all_logs_and_state_stores_share_an_s3_client_and_its_connections(files: Files) -> None:
    managers = [files.manager(files.path(f"state/0/{store}")) for store in range(8)]
    before = files.connections()
    for store, manager in enumerate(managers):
        assert not manager.exists(files.path(f"state/0/{store}/1.changelog"))
    assert files.connections() - before <= 1


def test_a_file_is_written_by_one_conditional_request_and_only_when_its_stream_is_closed(files: Files) -> None:
    stream = files.written(b"v1\n{}")
    assert files.names() == [] and files.proxy.requests == []
    stream.close()
    stream.close()
    stream.cancel()
    assert files.content() == b"v1\n{}"
    assert files.proxy.requests == [Request("PUT", f"/{files.bucket}/checkpoint/offsets/0", "", conditional=True)]


def test_a_cancelled_file_is_not_written(files: Files) -> None:
    stream = files.written(b"half")
    stream.cancel()
    stream.close()
    assert files.names() == [] and files.proxy.requests == []


def test_of_two_that_create_one_file_the_second_fails_and_the_first_ones_content_stays(files: Files) -> None:
    first, second = files.written(b"first"), files.written(b"second")
    first.close()
    kind, message = failure(second)
    assert (kind, message) == (_EXISTS, f"{files.path('offsets/0')} was written by another driver")
    second.cancel()
    assert files.content() == b"first"


def test_a_write_whose_answer_was_lost_is_recognized_as_its_own(files: Files) -> None:
    files.answer(CUT_AFTER)
    files.written(b"mine").close()
    assert files.content() == b"mine"
    assert len(files.proxy.seen("PUT")) == 2


def test_a_lost_answer_does_not_hide_another_writer(files: Files) -> None:
    files.written(b"theirs").close()
    files.answer(CUT_AFTER)
    assert failure(files.written(b"mine"))[0] == _EXISTS
    assert files.content() == b"theirs"


def test_a_conflict_is_retried(files: Files) -> None:
    files.answer(409, 409)
    files.written(b"mine").close()
    assert files.content() == b"mine"
    assert len(files.proxy.seen("PUT")) == 3


def test_a_conflict_that_does_not_end_is_an_error_and_nothing_is_written(files: Files) -> None:
    files.answer(*itertools.repeat(409, 100))
    kind, message = failure(files.written(b"mine"))
    assert kind == "java.io.IOException"
    why = "S3 reported a conflicting request (ConditionalRequestConflict) 6 times"
    assert message.startswith(f"conditional write of {files.path('offsets/0')} failed: {why}: ")
    assert len(files.proxy.seen("PUT")) == 6
    assert files.names() == []


def test_throttling_is_retried(files: Files) -> None:
    files.answer(503, 503, 503)
    files.written(b"mine").close()
    assert files.content() == b"mine"


@pytest.mark.parametrize("answer", [CUT_BEFORE, CUT_AFTER], ids=["before S3 has it", "after S3 has it"])
def test_an_s3_that_does_not_answer_is_an_error(files: Files, answer: int) -> None:
    files.proxy.rule = lambda request: answer
    kind, message = failure(files.written(b"mine"))
    assert kind == "java.io.IOException"
    assert message.startswith(f"conditional write of {files.path('offsets/0')} failed: ")
    reported = undecided_write(Exception(f"the query terminated with {kind}: {message}"))
    assert reported is not None and reported.path == str(files.path("offsets/0"))
    assert files.names() == ([] if answer == CUT_BEFORE else ["checkpoint/offsets/0"])


def test_a_refused_request_is_an_error(files: Files) -> None:
    files.s3.delete_bucket(Bucket=files.bucket)
    kind, message = failure(files.written(b"mine"))
    assert (kind, "NoSuchBucket" in message) == ("java.io.IOException", True)


def test_a_file_that_may_be_overwritten_is(files: Files) -> None:
    for content in (b"first", b"second"):
        files.written(content, "state/1.delta", overwrite=True).close()
        assert files.content("state/1.delta") == content
    assert files.proxy.requests == [Request("PUT", f"/{files.bucket}/checkpoint/state/1.delta", "", conditional=False)] * 2


def test_a_cancelled_file_that_may_be_overwritten_stays_as_it_was(files: Files) -> None:
    files.written(b"first", "state/1.delta", overwrite=True).close()
    stream = files.written(b"second", "state/1.delta", overwrite=True)
    stream.cancel()
    stream.close()
    assert files.content("state/1.delta") == b"first"


@pytest.mark.parametrize("setting", ["", "fs.s3a.create.conditional.enabled"])
def test_a_file_system_that_cannot_create_conditionally_is_refused(files: Files, setting: str) -> None:
    path = files._jvm.org.apache.hadoop.fs.Path("/tmp/checkpoint")
    if setting:
        files.conf.set(setting, "false")
        path = files.path("offsets")
    with pytest.raises(Py4JJavaError) as raised:
        files.manager(path)
    thrown: Any = raised.value.java_exception
    while thrown.getCause() is not None:
        thrown = thrown.getCause()
    assert thrown.getClass().getName() == "org.apache.hadoop.fs.UnsupportedFileSystemException"
