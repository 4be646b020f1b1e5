"""What a job depends on ends, does not answer, or answers with errors: every row comes out once, for readers that look all the time."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.errors import DriverDied
from penstock.scripts.local import recorded_run
from penstock.scripts.local.kafka_broker import KafkaBroker
from tests.chaos.bucket_reader import BucketReader
from tests.chaos.executor_traps import until
from tests.chaos.faulty_s3 import HangingS3, RefusingS3
from tests.chaos.killed_job import LIMIT_S, OUTPUT, ROWS, Job, NewJob, everywhere, faults
from tests.chaos.ledger import Ledger
from tests.chaos.restarted_broker import RestartedBroker
from tests.chaos.topic_reader import TopicReader

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# Without brokers a driver ends before it starts Spark, after some ten seconds.
_STARTS = 40
_AWAY_S = 120


def _job(app: str, aws: EmulatedAws, kafka: KafkaBroker, s3: S3Client, folder: Path) -> Job:
    return Job(f"c{os.urandom(4).hex()}", app, aws, kafka, s3, folder)


class Flow:
    """A job that runs in the background, started again where its driver ends, and the readers of its output.

    Args:
        job: it.
        files: reader of its files.
        topic: reader of its topic.
    """

    def __init__(self, job: Job, files: BucketReader, topic: TopicReader) -> None:
        self.job, self.files, self.topic = job, files, topic
        self._thread = threading.Thread(target=self._run)
        self._failure: BaseException | None = None

    def start(self) -> None:
        """Starts it."""
        self._thread.start()

    def finish(self) -> None:
        """Waits until all is read."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def written(self, more: int) -> None:
        """Waits until readers of the topic have seen so many rows more than now."""
        least = min(len(self.topic.rows) + more, len(ROWS))
        until(lambda: len(self.topic.rows) >= least or self._failure is not None, LIMIT_S, f"{least} rows")

    def verify(self, ledger: Ledger) -> None:
        """Compares what was seen, and what lies there, with what must be."""
        ledger.compared(ROWS, self.topic.rows)
        ledger.compared(ROWS, Counter(str(row["name"]) for row in self.job.output()))
        assert faults(self.job, self.files, ROWS, "name") == []
        assert self.topic.faults == [] and self.topic.rows == Counter(ROWS)
        assert recorded_run.count_records(self.job.kafka.address, f"{self.job.name}-errors") == 12

    def _run(self) -> None:
        try:
            for start in range(_STARTS):
                try:
                    with self.job.driver() as driver:
                        driver.until_read(self.job.ends)
                    return
                except DriverDied:
                    if start == _STARTS - 1:
                        raise
        except BaseException as error:
            self._failure = error


@contextmanager
def _flow(job: Job) -> Iterator[Flow]:
    with BucketReader(job.s3, OUTPUT, job.name, "name") as files, TopicReader(job.kafka.address, f"{job.name}-topic", "name") as topic:
        flow = Flow(job, files, topic)
        flow.start()
        try:
            yield flow
        finally:
            flow.finish()


@pytest.mark.timeout(1_800)
def test_a_broker_that_is_killed_and_one_that_is_stopped_are_started_again(
    aws: EmulatedAws, s3: S3Client, tmp_path: Path, ledger: Ledger
) -> None:
    broker = RestartedBroker(folder=tmp_path / "kafka", log=tmp_path / "kafka.log")
    with broker:
        job = everywhere(lambda app: _job(app, aws, broker, s3, tmp_path), "exactly-once")
        with _flow(job) as flow:
            for number in (signal.SIGKILL, signal.SIGTERM):
                flow.written(50)
                broker.end(number)
                broker.start_again()
                with ledger.recovering():
                    flow.written(1)
        flow.verify(ledger)


@pytest.mark.timeout(1_800)
def test_a_broker_that_does_not_answer_for_two_minutes(aws: EmulatedAws, s3: S3Client, tmp_path: Path, ledger: Ledger) -> None:
    broker = RestartedBroker(folder=tmp_path / "kafka", log=tmp_path / "kafka.log")
    with broker:
        job = everywhere(lambda app: _job(app, aws, broker, s3, tmp_path), "exactly-once")
        with _flow(job) as flow:
            flow.written(50)
            os.kill(broker.pid, signal.SIGSTOP)
            try:
                # The fault is this time, and nothing is waited for.
                time.sleep(_AWAY_S)
            finally:
                os.kill(broker.pid, signal.SIGCONT)
            with ledger.recovering():
                flow.written(1)
        flow.verify(ledger)


@pytest.mark.timeout(1_800)
def test_an_s3_that_refuses_a_quarter_of_all_requests(new_job: NewJob, aws: EmulatedAws, chaos_seed: int, ledger: Ledger) -> None:
    with RefusingS3(aws.endpoint, chaos_seed, slow_down=0.2, internal_error=0.05) as refusing:
        job = everywhere(new_job, "exactly-once")
        job.endpoint = job.endpoint_of_python = refusing.endpoint
        with _flow(job) as flow:
            flow.written(len(ROWS))
        ledger.times(refusing.answers["503 SlowDown"] + refusing.answers["500 InternalError"])
    flow.verify(ledger)
    assert min(refusing.answers["503 SlowDown"], refusing.answers["500 InternalError"]) > 10


@pytest.mark.timeout(1_800)
def test_writes_that_hang_and_reach_s3_once_they_were_written_again(new_job: NewJob, aws: EmulatedAws, ledger: Ledger) -> None:
    kinds = {"offsets": "/offsets/[0-9]+$", "commits": "/commits/[0-9]+$", "record": "/batches/", "manifest": "/sinks/out/log/"}
    with HangingS3(aws.endpoint, hangs_s=15, kinds=kinds) as hanging:
        job = everywhere(new_job, "exactly-once")
        job.endpoint = job.endpoint_of_python = hanging.endpoint
        job.spark_conf = {"spark.hadoop.fs.s3a.connection.timeout": "5s"}
        with _flow(job) as flow:
            flow.written(len(ROWS))
        ledger.times(len(hanging.hung))
    flow.verify(ledger)
    assert sorted(hanging.hung) == sorted(kinds)
