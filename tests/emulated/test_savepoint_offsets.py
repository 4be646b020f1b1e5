"""``penstock savepoint start-from`` with the offsets of other brokers: what it shows of a real one, and what it refuses."""

from __future__ import annotations

import json
import textwrap

import pytest

from penstock.jobs.local.recording import Record
from penstock.jobs.storage.checkpoint import BatchRecord, Position
from penstock.jobs.storage.job_folder import JobFolder
from penstock.scripts.local import kafka_topics
from penstock.scripts.local.kafka_broker import KafkaBroker
from tests.emulated.test_savepoint_command import Desk, desk
from tests.scripts.cli.called import Called

__all__ = ["desk"]
HOUR_MS = 3_600_000
# Of the micro-batch that the desk commits, after which its topic goes on at 5,000.
SAVED_MS = 1_764_000_000_000


@pytest.fixture(scope="module")
def brokers(broker: KafkaBroker) -> str:
    """With the topic: its first two records are older than the savepoint, and the third is of its time."""
    kafka_topics.create(broker.address, {"clicks": 1})
    records = [Record(b"{}", partition=0, timestamp_ms=SAVED_MS + hours * HOUR_MS) for hours in (-2, -1, 0, 1, 2, 3)]
    kafka_topics.feed(broker.address, "clicks", 1, records, lambda _: None)
    return broker.address


@pytest.fixture
def saved(desk: Desk) -> Desk:
    """With a savepoint."""
    desk.begin()
    desk.commit()
    assert desk.savepoint("create", "--name", "one").returncode == 0
    return desk


def _file(desk: Desk, content: object) -> str:
    path = desk.folder / "offsets.json"
    path.write_text(json.dumps(content))
    return str(path)


def _start(desk: Desk, brokers: str, *words: str) -> Called:
    return desk.savepoint("start-from", "one", "--brokers", brokers, *words)


def _words(done: Called) -> list[list[str]]:
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def test_it_shows_where_each_partition_is_read_on_and_what_that_means(saved: Desk, brokers: str) -> None:
    at_its_time = _start(saved, brokers, "--offsets-at-time", "savepoint", "--plan-only")
    assert ["-", "clicks", "0", "5,000", "2", "4"] in _words(at_its_time)
    assert "0 records of before the savepoint's time" in at_its_time.stdout and "0 records since" in at_its_time.stdout
    earlier = _start(saved, brokers, "--offsets-at-time", "2025-11-24T20:30:00+05:30", "--plan-only")
    assert ["-", "clicks", "0", "5,000", "1", "5"] in _words(earlier)
    assert "1 record of before the savepoint's time: the state counts them twice" in earlier.stdout
    later = _start(saved, brokers, "--offsets", _file(saved, {"clicks": {"0": 5}}), "--plan-only")
    assert ["-", "clicks", "0", "5,000", "5", "1"] in _words(later)
    assert "3 records since the savepoint's time: neither the state nor the sinks get them" in later.stdout
    unseen = saved.savepoint("start-from", "one", "--offsets-at-time", "savepoint", "--plan-only")
    assert unseen.returncode == 0 and "not looked up: the brokers are not reached from here (TOP-00" in unseen.stdout
    # An emulated cluster has no pods, and the request is withdrawn before there is one.
    assert "DEP-017" in _start(saved, brokers, "--offsets-at-time", "savepoint", "--yes").stderr
    assert saved.requested() is None


def test_offsets_that_the_topics_do_not_have_are_refused_before_anything_is_requested(saved: Desk, brokers: str) -> None:
    other = _start(saved, brokers, "--offsets", _file(saved, {"clicks": {"0": 5}, "other": {"0": 1}}), "--yes")
    assert (other.returncode, other.stderr.count("JOB-101")) == (5, 1)
    assert "a topic that a source of the savepoint reads: clicks" in other.stderr
    assert "JOB-093" in _start(saved, brokers, "--offsets-at-time", "2099-01-01T00:00:00Z", "--yes").stderr
    unread = _start(saved, brokers, "--offsets", "/nowhere.json", "--yes")
    assert (unread.returncode, "USE-001" in unread.stderr, "/nowhere.json" in unread.stderr) == (2, True, True)
    assert saved.requested() is None


def test_a_savepoint_of_a_job_that_was_behind_or_had_more_partitions_is_refused(desk: Desk, brokers: str) -> None:
    desk.begin()
    desk.commit()
    record = BatchRecord(batch=0, positions={"clicks": {0: Position(4_000, 5_000)}})
    JobFolder(desk.uri, desk.s3).checkpoint(1).record(record)
    key = "clicks/checkpoints/1/offsets/0"
    log = desk.s3.get_object(Bucket=desk.bucket, Key=key)["Body"].read()
    desk.s3.put_object(Bucket=desk.bucket, Key=key, Body=log.replace(b'{"0":5000}', b'{"0":4000,"1":3}'))
    assert desk.savepoint("create", "--name", "one").returncode == 0
    behind = _start(desk, brokers, "--offsets-at-time", "savepoint", "--yes")
    assert "JOB-101" in behind.stderr and "1,000 records that the job had not read" in behind.stderr
    fewer = _start(desk, brokers, "--offsets-at-time", "2025-11-24T15:00:00Z", "--yes")
    assert "JOB-101" in fewer.stderr and "partition 1, too, of which the savepoint has the offset" in fewer.stderr
    # A job that has never run has a spec for it.
    uri, file = f"{desk.uri}/savepoints/one", _file(desk, {"clicks": {"0": 5}})
    never = desk.savepoint("start-from", uri, "--fork", "--offsets", file, job="fork")
    lines = f'spec:\n  initialSavepointPath: {uri}\n  initialOffsets: {{"clicks": {{"0": 5}}}}\n'
    assert textwrap.indent(lines, " " * 7) in f"{never.stderr}\n"
    assert desk.requested() is None
