"""Checkpoints of earlier versions of Penstock, with Spark's own file manager and without unique names of state files, go on."""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from pyspark.sql import SparkSession

from penstock.jobs.driver.session import FIXED, state_conf
from penstock.jobs.spec import State
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from tests.jobs.spark.running import CHECKPOINTS
from tests.jobs.spark.s3_proxy import Request, S3Proxy

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
BEFORE = {_MANAGER: "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager", _FORMAT: "1"}
NOW = {_MANAGER: FIXED[_MANAGER], **state_conf(State())}
HEAP_BEFORE = {**BEFORE, **{key: value for key, value in state_conf(State(backend="memory")).items() if key != _FORMAT}}
HEAP_NOW = {_MANAGER: FIXED[_MANAGER], **state_conf(State(backend="memory"))}


class Counting:
    """Counts words with Spark's own aggregation; a run reads what was written since the last one."""

    def __init__(self, session: SparkSession, s3: S3Client, folder: Path) -> None:
        self._session = session
        self._s3 = s3
        self._folder = folder
        self.name = f"counting-{uuid.uuid4().hex[:8]}"

    def run(self, conf: dict[str, str], *words: str) -> dict[str, int]:
        before = {key: self._session.conf.get(key, None) for key in conf}
        (self._folder / f"{len(list(self._folder.iterdir()))}.txt").write_text("\n".join(words))
        counts: dict[str, int] = {}
        for key, given in conf.items():
            self._session.conf.set(key, given)
        try:
            rows = self._session.readStream.text(str(self._folder)).groupBy("value").count()
            writer = rows.writeStream.outputMode("complete").foreachBatch(lambda batch, _: counts.update(map(tuple, batch.collect())))
            query = writer.option("checkpointLocation", f"s3a://{CHECKPOINTS}/{self.name}").trigger(availableNow=True).start()
            query.awaitTermination()
        finally:
            for key, value in before.items():
                self._session.conf.unset(key) if value is None else self._session.conf.set(key, value)
        return counts

    def files(self, ending: str) -> list[str]:
        listed = self._s3.list_objects_v2(Bucket=CHECKPOINTS, Prefix=f"{self.name}/state/0/0/").get("Contents", [])
        return [name for name in (one["Key"].rsplit("/", 1)[1] for one in listed) if name.endswith(ending)]

    def commit(self, batch: int) -> tuple[str, dict[str, Any]]:
        """Version and content of an entry of the commit log."""
        text = self._s3.get_object(Bucket=CHECKPOINTS, Key=f"{self.name}/commits/{batch}")["Body"].read().decode()
        version, content = text.split("\n", 1)
        return version, json.loads(content)


@pytest.fixture
def counting(session: SparkSession, s3: S3Client, tmp_path: Path) -> Counting:
    return Counting(session, s3, tmp_path)


def test_a_new_checkpoint_has_state_files_that_no_other_driver_overwrites(counting: Counting) -> None:
    assert counting.run(NOW, "a", "b") == {"a": 1, "b": 1}
    assert counting.run(NOW, "a") == {"a": 2, "b": 1}
    names = counting.files(".changelog")
    assert len(names) == 2 and all(re.fullmatch(r"[12]_[0-9a-f-]{36}\.changelog", name) for name in names)
    version, content = counting.commit(1)
    assert version == "v2"
    # Of the version that the micro-batch committed, for each partition.
    assert [name for name in names if name.startswith("2_")] == [f"2_{content['stateUniqueIds']['0'][0][0]}.changelog"]


def test_an_older_checkpoint_goes_on_with_its_state_in_the_format_that_it_has(counting: Counting) -> None:
    assert counting.run(BEFORE, "a", "b") == {"a": 1, "b": 1}
    assert counting.run(NOW, "a") == {"a": 2, "b": 1}
    assert counting.run(NOW, "a", "b") == {"a": 3, "b": 2}
    assert counting.files(".changelog") == ["1.changelog", "2.changelog", "3.changelog"]
    assert counting.commit(2)[0] == "v1"


def test_an_older_checkpoint_with_state_on_the_heap_goes_on(counting: Counting) -> None:
    assert counting.run(HEAP_BEFORE, "a", "b") == {"a": 1, "b": 1}
    assert counting.run(HEAP_NOW, "a") == {"a": 2, "b": 1}
    assert counting.files(".delta") == ["1.delta", "2.delta"]


@pytest.fixture
def proxy(aws: EmulatedAws) -> Iterator[S3Proxy]:
    with S3Proxy(aws.endpoint) as proxy:
        yield proxy


def test_of_two_queries_that_both_saw_no_entry_one_writes_it_and_the_other_ends(
    session: SparkSession, s3: S3Client, proxy: S3Proxy
) -> None:
    """Each write waits in the proxy until the other one has come: neither query could have seen the other's entry."""
    bucket = f"race-{uuid.uuid4().hex[:8]}"
    s3.create_bucket(Bucket=bucket)
    both = threading.Barrier(2)

    def together(request: Request) -> None:
        if request.conditional and request.path.endswith("/commits/7"):
            both.wait(120)

    proxy.rule = together
    jvm = cast(Any, session._jvm)
    jvm_session: Any = session._jsparkSession
    jvm_session.sparkContext().hadoopConfiguration().set(f"fs.s3a.bucket.{bucket}.endpoint", proxy.endpoint)
    checkpointing = jvm.org.apache.spark.sql.execution.streaming.checkpointing
    logs = [checkpointing.CommitLog(jvm_session, f"s3a://{bucket}/commits", False) for _ in range(2)]
    ends: list[str] = []

    def commit(log: Any, watermark_ms: int) -> None:
        try:
            assert log.add(7, checkpointing.CommitMetadata(watermark_ms)) is True
            ends.append(f"committed {watermark_ms}")
        except Exception as error:
            ends.append(str(error))

    threads = [threading.Thread(target=commit, args=(log, number)) for number, log in enumerate(logs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
    (committed,) = [end for end in ends if end.startswith("committed ")]
    (failed,) = [end for end in ends if not end.startswith("committed ")]
    assert "SparkConcurrentModificationException" in failed and f"s3a://{bucket}/commits" in failed
    content = s3.get_object(Bucket=bucket, Key="commits/7")["Body"].read().decode()
    assert json.loads(content.split("\n", 1)[1]) == {"nextBatchWatermarkMs": int(committed.split()[1])}
