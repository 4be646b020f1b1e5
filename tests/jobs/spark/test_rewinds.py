"""A job that is rewound to a time reads its topics again from the records of that time, with an empty checkpoint."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from penstock.jobs.driver.errors import JobStopped, RewindImpossible
from penstock.jobs.driver.rewind import instant
from penstock.jobs.local.recording import Record
from penstock.jobs.storage.checkpoint import BatchRecord
from penstock.jobs.storage.driver_runs import DriverRuns, DriverRunsFile
from penstock.jobs.storage.errors import LeaseLost
from penstock.jobs.storage.generation import Generation, Rewound
from penstock.jobs.storage.job_folder import JobFolder
from penstock.jobs.storage.rewind_request import RewindRequest, RewindRequestFile, StartPoint
from penstock.scripts.local import kafka_topics
from tests.jobs.spark.running import CHECKPOINTS, Surroundings, TestedJob

HOUR_MS = 3_600_000
# Of the records: their timestamps are an hour apart, the last one of an hour ago.
LAST_MS = 1_000 * (int(time.time()) - 3_600)


@pytest.fixture
def job(surroundings: Surroundings) -> TestedJob:
    """With four records in the first partition of its topic and one, of the third one's time, in the second."""
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 2})
    for number in range(4):
        _feed(job, f"row-{number}", LAST_MS - (3 - number) * HOUR_MS)
    _feed(job, "other", LAST_MS - HOUR_MS, partition=1)
    return job


def _feed(job: TestedJob, name: str, timestamp_ms: int, partition: int = 0) -> None:
    value = json.dumps({"key": "k", "at": "2025-04-05T12:30:01Z", "name": name}).encode()
    record = Record(value, partition=partition, timestamp_ms=timestamp_ms)
    kafka_topics.feed(job.around.brokers, job.topics["a"], 2, [record], lambda _: None)


def _set(**fields: Any) -> Callable[[dict[str, Any]], object]:
    return lambda spec: spec.update(fields)


def _current(job: TestedJob) -> Generation:
    current = _folder(job).current()
    assert current is not None
    return current


def _folder(job: TestedJob) -> JobFolder:
    return JobFolder(f"s3a://{CHECKPOINTS}/{job.name}")


def _run(job: TestedJob, *ends: int) -> list[str]:
    """Runs the job until it has read its topic to these offsets. Returns what it has said."""
    with job.running() as running:
        if ends:
            running.until_read({"a": ends})
    return running.heard


def _ask(job: TestedJob, *, to: StartPoint | None = None, back_to: int | None = None) -> None:
    """Requests a rewind, or its undo, as ``penstock rewind`` does."""
    file = RewindRequestFile(_folder(job).uri)
    request = RewindRequest(after=_current(job).number, to=to, back_to=back_to, asked=datetime.now(UTC))
    assert file.replace(file.read(), request)


def _names(job: TestedJob) -> list[str]:
    return sorted(row["name"] for row in job.rows())


def test_a_rewind_reads_the_records_since_a_time_again_once_and_keeps_the_old_checkpoint(job: TestedJob) -> None:
    assert "rewinding" not in _run(job, 4, 1)
    whole = ["other", "row-0", "row-1", "row-2", "row-3"]
    assert _names(job) == whole

    # A second before the third record; records with that time in any partition are read again.
    rewind_ms = LAST_MS - HOUR_MS - 1_000
    job.edit(_set(rewindTo=instant(rewind_ms)))
    assert "rewinding" in _run(job, 4, 1)
    again = [*whole, "other", "row-2", "row-3"]
    assert _names(job) == sorted(again)
    rewound = _current(job)
    assert (rewound.number, rewound.checkpoint, rewound.rewound_to) == (2, 2, rewind_ms)
    assert rewound.starts == {"a": {job.topics["a"]: {0: 2, 1: 0}}}
    assert rewound.parent is not None and rewound.parent.batches[""] >= 0
    assert _folder(job).checkpoints() == [1, 2]

    # It is done: neither a restart nor another change rewinds again, and the state goes on.
    assert "rewinding" not in _run(job)
    job.edit(_set(trigger="2ms"))
    _feed(job, "row-4", LAST_MS + 1_000)
    assert "rewinding" not in _run(job, 5, 1)
    assert _names(job) == sorted([*again, "row-4"])
    after = _current(job)
    assert (after.number, after.checkpoint, after.rewound_to) == (3, 2, rewind_ms)

    # Another time is another rewind, here in epoch milliseconds: exactly that of the last record.
    job.edit(_set(rewindTo=LAST_MS + 1_000))
    _run(job, 5)
    assert _names(job) == sorted([*again, "row-4", "row-4"])


def test_a_rewind_that_cannot_be_done_touches_nothing(job: TestedJob) -> None:
    _run(job, 4, 1)
    admin = AdminClient({"bootstrap.servers": job.around.brokers})
    (deleted,) = admin.delete_records([TopicPartition(job.topics["a"], 0, 2)]).values()
    deleted.result(30)
    third_ms = LAST_MS - HOUR_MS

    job.edit(_set(rewindTo=instant(third_ms - 1)))
    with pytest.raises(RewindImpossible) as gone, job.running():
        pass
    assert (gone.value.code, gone.value.path) == ("JOB-093", f"topic {job.topics['a']}, partition 0")
    assert gone.value.need.startswith(f"a time from {instant(third_ms)} on")
    tomorrow_ms = 1_000 * int(time.time()) + 24 * HOUR_MS
    job.edit(_set(rewindTo=tomorrow_ms))
    with pytest.raises(RewindImpossible) as future, job.running():
        pass
    assert future.value.given == instant(tomorrow_ms)

    assert (_folder(job).generations(), _folder(job).checkpoints()) == ([1], [1])
    job.edit(lambda spec: spec.pop("rewindTo"))
    _feed(job, "row-4", LAST_MS + 1_000)
    _run(job, 5, 1)
    assert _names(job) == ["other", "row-0", "row-1", "row-2", "row-3", "row-4"]
    assert _folder(job).generations() == [1]

    job.edit(_set(rewindTo=instant(third_ms)))
    _run(job, 5, 1)
    assert _names(job).count("row-2") == 2


@pytest.mark.chaos
def test_a_requested_rewind_is_done_once_and_undone_with_each_row_where_it_belongs(job: TestedJob) -> None:
    _run(job, 4, 1)
    whole = ["other", "row-0", "row-1", "row-2", "row-3"]
    _ask(job, to=LAST_MS)
    assert "rewinding" in _run(job, 4, 1)
    assert _names(job) == sorted([*whole, "row-3"])
    rewound = _current(job)
    assert (rewound.number, rewound.checkpoint, rewound.rewind) == (2, 2, Rewound(to=LAST_MS, left=1))
    # Neither a restart nor a change does it again.
    job.edit(_set(trigger="2ms"))
    _feed(job, "row-4", LAST_MS + 1_000)
    assert "rewinding" not in _run(job, 5, 1)
    assert _names(job) == sorted([*whole, "row-3", "row-4"])

    # The first checkpoint goes on where it was stopped: it has not read the last record yet.
    _ask(job, back_to=1)
    assert "rewinding" not in _run(job, 5, 1)
    assert _names(job) == sorted([*whole, "row-3", "row-4", "row-4"])
    back = _current(job)
    assert (back.number, back.checkpoint, back.rewind) == (4, 1, None)
    assert back.parent is not None and back.parent.batches[""] >= 0
    _feed(job, "row-5", LAST_MS + 2_000)
    _run(job, 6, 1)
    assert _names(job) == sorted([*whole, "row-3", "row-4", "row-4", "row-5"])
    # A driver that still runs on the checkpoint that was left commits nothing more.
    left = _folder(job).checkpoint(2, token=1)
    with pytest.raises(LeaseLost):
        left.record(BatchRecord(batch=left.last_record().batch + 1, token=1))


def test_a_job_begins_anew_where_it_is_asked_to_and_goes_back(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1})
    job.edit(lambda spec: spec["sources"]["a"]["kafka"].update(startingOffsets="earliest"))
    _feed(job, "row-0", LAST_MS)
    _feed(job, "row-1", LAST_MS)
    _run(job, 2)
    _ask(job, to="latest")
    assert "rewinding" in _run(job)
    at_the_end = _current(job)
    assert (at_the_end.checkpoint, at_the_end.rewind) == (2, Rewound(to="latest", left=1))
    # What comes before its first micro-batch is not skipped.
    _feed(job, "row-2", LAST_MS)
    assert "rewinding" not in _run(job, 3)
    assert _names(job) == ["row-0", "row-1", "row-2"]
    # The spec says earliest.
    _ask(job, to="spec")
    assert "rewinding" in _run(job, 3)
    assert _names(job) == ["row-0", "row-0", "row-1", "row-1", "row-2", "row-2"]
    _ask(job, back_to=1)
    _run(job, 3)
    assert (_current(job).checkpoint, _names(job).count("row-2")) == (1, 3)


def test_a_requested_rewind_that_cannot_be_done_leaves_the_job_as_it_is(job: TestedJob) -> None:
    _run(job, 4, 1)
    tomorrow_ms = 1_000 * int(time.time()) + 24 * HOUR_MS
    _ask(job, to=tomorrow_ms)
    with pytest.raises(RewindImpossible) as future, job.running():
        pass
    assert (future.value.path, future.value.given) == ("the rewind", instant(tomorrow_ms))
    assert (_folder(job).generations(), _folder(job).checkpoints()) == ([1], [1])
    # It is not tried again. Another request takes its place, and the job is resumed with it.
    _ask(job, to=LAST_MS)
    with pytest.raises(JobStopped), job.running():
        pass
    DriverRunsFile(_folder(job).uri).change(DriverRuns.resumed)
    _run(job, 4, 1)
    assert _names(job).count("row-3") == 2


def test_an_undo_before_the_first_micro_batch_skips_nothing(surroundings: Surroundings) -> None:
    """The checkpoint has read nothing, of a job that starts at the end of its topic, and the rewind neither."""
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1})
    job.edit(lambda spec: spec["sources"]["a"]["kafka"].update(startingOffsets="latest"))
    _run(job)
    _ask(job, to=LAST_MS)
    _run(job)
    _feed(job, "meanwhile", LAST_MS)
    _ask(job, back_to=1)
    _run(job, 1)
    assert (_current(job).checkpoint, _names(job)) == (1, ["meanwhile"])


def test_a_driver_that_ends_before_the_first_micro_batch_skips_nothing_that_comes_meanwhile(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1})
    job.edit(lambda spec: spec["sources"]["a"]["kafka"].update(startingOffsets="latest"))
    _run(job)
    _feed(job, "meanwhile", LAST_MS)
    _run(job, 1)
    assert _names(job) == ["meanwhile"]
