"""``penstock rewind``: what it shows before it does anything, from a real broker and the job's folder on an emulated S3."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from penstock.infra.environment import Environment
from penstock.jobs.driver.rewind import instant
from penstock.jobs.local.recording import Record
from penstock.jobs.storage.checkpoint import BatchRecord, Position
from penstock.jobs.storage.generation import Rewound
from penstock.jobs.storage.job_folder import JobFolder
from penstock.jobs.storage.query_record import QueryRecord
from penstock.jobs.storage.rewind_request import RewindRequest, RewindRequestFile
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.local import kafka_topics
from penstock.scripts.local.kafka_broker import KafkaBroker
from penstock.scripts.provisioning.aws_access import AwsAccess
from tests.emulated.job_history import commit, generation
from tests.emulated.small_stacks import environment
from tests.scripts.cli.called import Called, penstock

HOUR_MS = 3_600_000
NOW_MS = round(time.time() * 1000)
SPEC = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec:
  app: clicks
  load: {eventsPerSecond: 100, eventBytes: 200, eventsPerSlot: 1000}
  executor: {slots: 1}
  sources: {a: {kafka: {topic: TOPIC, partitions: 2, startingOffsets: earliest}}}
  sinks:
    out: {files: {path: clicks}}
    ledger: {postgres: {connection: db, table: t, key: [id], version: at}}
"""


@dataclass
class Desk:
    """An environment with a job that reads a topic of its own.

    Args:
        own: the environment.
        folder: for its files.
        brokers: with the topic.
        topic: of two partitions, with four records an hour apart in the first one.
    """

    own: Environment
    folder: Path
    brokers: str
    topic: str

    def __post_init__(self) -> None:
        self.s3 = AwsAccess(self.own).client("s3")
        self.bucket = self.own.spec.buckets.checkpoints
        self.s3.create_bucket(Bucket=self.bucket)
        self.uri = f"s3a://{self.bucket}/clicks"
        (self.folder / "environment.yaml").write_text(self.own.text())

    def begin(self) -> None:
        """What a job's first driver leaves."""
        JobFolder(self.uri, self.s3).begin(generation(queries={"": QueryRecord.of(["a"], ["Aggregate"])}))

    def rewind(self, *words: str, without_brokers: bool = False) -> Called:
        given = () if without_brokers else ("--brokers", self.brokers)
        return penstock("rewind", str(self.folder / "environment.yaml"), "--job", "clicks", *given, *words)

    def redeploy(self, *words: str) -> Called:
        return penstock("redeploy", str(self.folder / "environment.yaml"), "--job", "clicks", "--brokers", self.brokers, *words)

    @property
    def requested(self) -> RewindRequest | None:
        return RewindRequestFile(self.uri, self.s3).read()


@pytest.fixture
def desk(aws: EmulatedAws, broker: KafkaBroker, tmp_path: Path) -> Desk:
    topic = f"t{uuid.uuid4().hex[:8]}"
    kafka_topics.create(broker.address, {topic: 2})
    records = [Record(b"{}", partition=0, timestamp_ms=NOW_MS - hours * HOUR_MS) for hours in (4, 3, 2, 1)]
    kafka_topics.feed(broker.address, topic, 2, records, lambda _: None)
    (tmp_path / "clicks.py").write_text("def build(job):\n    job.write(job.source('a', 'at STRING'), 'out', 'ledger')\n")
    (tmp_path / "clicks.yaml").write_text(SPEC.replace("TOPIC", topic))
    data = environment(aws, f"rw{uuid.uuid4().hex[:8]}").model_dump(by_alias=True, exclude_none=True)
    data["spec"]["jobs"] = [str(tmp_path / "clicks.yaml")]
    return Desk(Environment.model_validate(data), tmp_path, broker.address, topic)


def test_it_shows_the_records_and_what_each_sink_gets_twice_and_changes_nothing(desk: Desk) -> None:
    desk.begin()
    done = desk.rewind("--by", "150m", "--plan-only")
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["a", desk.topic, "2", "2"] in rows
    assert "as generation 2 with an empty checkpoint" in done.stdout
    assert "at the plan's" in done.stdout and "keyed state begin empty" in done.stdout
    assert "are written again, in new files" in done.stdout
    assert "overwrite their keys, unless the table has a greater at" in done.stdout
    assert desk.requested is None


@pytest.mark.parametrize(("words", "given"), [(("--undo",), "--undo"), (("--to", "earliest"), "--to earliest")])
def test_with_the_state_a_rewind_needs_a_time(desk: Desk, words: tuple[str, ...], given: str) -> None:
    desk.begin()
    done = desk.rewind(*words, "--with-state", "--yes")
    assert done.returncode == 2
    assert "--with-state" in done.stderr and given in done.stderr
    assert desk.requested is None


def test_without_the_brokers_it_says_why_it_cannot_count(desk: Desk) -> None:
    desk.begin()
    done = desk.rewind("--to", instant(NOW_MS - HOUR_MS), "--plan-only", without_brokers=True)
    assert done.returncode == 0, done.stderr
    assert "not counted" in done.stdout and "TOP-005" in done.stdout


@pytest.mark.parametrize(
    ("words", "records", "skipped"),
    [
        ((), 4, ""),
        (("--from", "earliest"), 4, ""),
        (("--from", "latest"), 0, "3 records that the job has not read yet"),
        (("--by", "150m"), 2, "1 record that the job has not read yet"),
    ],
)
def test_a_job_that_begins_anew_is_shown_with_what_it_reads_and_skips(
    desk: Desk, words: tuple[str, ...], records: int, skipped: str
) -> None:
    desk.begin()
    positions = {desk.topic: {0: Position(1, 4), 1: Position(0, 0)}}
    commit(desk.s3, JobFolder(desk.uri, desk.s3).checkpoint(1), BatchRecord(batch=0, positions=positions))
    done = desk.redeploy(*words, "--plan-only")
    assert done.returncode == 0, done.stderr
    assert ["a", desk.topic, "2", str(records)] in [line.split() for line in done.stdout.splitlines()]
    assert ("skipped" in done.stdout, skipped in done.stdout) == (bool(skipped), True)
    assert ("are written again, in new files" in done.stdout) == bool(records)
    assert "as generation 2 with an empty checkpoint" in done.stdout and "keyed state begin empty" in done.stdout
    assert "DEP-017" in desk.redeploy(*words, "--yes").stderr
    assert desk.requested is None


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--to", str(NOW_MS + 24 * HOUR_MS)), "JOB-093"),
        (("--to", "2026-11-21T12:00:00"), "USE-001"),
        (("--by", "an hour"), "USE-001"),
        (("--to", "0", "--by", "1h"), "USE-001"),
        ((), "USE-001"),
        # Nobody can be asked.
        (("--by", "1h"), "USE-001"),
        # An emulated cluster has no pods.
        (("--by", "1h", "--yes"), "DEP-017"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_requested(desk: Desk, words: tuple[str, ...], code: str) -> None:
    desk.begin()
    done = desk.rewind(*words)
    assert done.returncode != 0 and code in done.stderr, done.stderr
    assert desk.requested is None


def test_a_time_that_retention_has_passed_names_the_earliest_one(desk: Desk) -> None:
    desk.begin()
    admin = AdminClient({"bootstrap.servers": desk.brokers})
    (deleted,) = admin.delete_records([TopicPartition(desk.topic, 0, 2)]).values()
    deleted.result(30)
    done = desk.rewind("--by", "5h", "--yes")
    assert "JOB-093" in done.stderr and instant(NOW_MS - 2 * HOUR_MS) in done.stderr


def test_an_undo_shows_where_the_checkpoint_before_goes_on(desk: Desk) -> None:
    desk.begin()
    folder = JobFolder(desk.uri, desk.s3)
    folder.checkpoint(1).identity()
    assert "DEP-019" in desk.rewind("--undo", "--plan-only").stderr
    first = folder.generation(1)
    folder.begin(first.model_copy(update={"number": 2, "checkpoint": 2, "rewind": Rewound(to=NOW_MS, left=1)}))
    commit(desk.s3, folder.checkpoint(1), BatchRecord(batch=7, time_ms=1_764_000_000_000, total_rows_in={"a": 5_000}))
    done = desk.rewind("--undo", "--plan-only")
    assert done.returncode == 0, done.stderr
    assert "checkpoint 1 of generation 1 goes on with its state, as generation 3" in done.stdout
    assert "after micro-batch 7 of 2025-11-24 16:00:00 UTC, and 5,000 records" in done.stdout
    assert "are written again, in new files" in done.stdout
    assert "DEP-017" in desk.rewind("--undo", "--yes").stderr
    assert desk.requested is None


def test_a_request_that_has_not_begun_is_what_an_undo_withdraws(desk: Desk) -> None:
    desk.begin()
    request = RewindRequest(after=1, to=NOW_MS, asked=datetime.now(UTC))
    assert RewindRequestFile(desk.uri, desk.s3).replace(None, request)
    done = desk.rewind("--undo", "--plan-only")
    assert (done.returncode, "has not begun" in done.stdout) == (0, True)
    assert desk.requested == request


def test_a_job_that_has_not_run_has_nothing_to_rewind(desk: Desk) -> None:
    done = desk.rewind("--by", "1h", "--yes")
    assert (done.returncode, "DEP-019" in done.stderr) == (2, True)
