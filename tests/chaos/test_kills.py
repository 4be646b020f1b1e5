"""A real driver killed by SIGKILL and started again: no row lost, none twice, for a reader that never looks away."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis

from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.local import kafka_topics, recorded_run
from penstock.scripts.local.servers.postgres_server import PostgresServer
from penstock.scripts.local.servers.redis_server import RedisServer
from tests.chaos.bucket_reader import BucketReader
from tests.chaos.doomed_driver import CARELESS
from tests.chaos.killed_job import OUTPUT, ROWS, Job, NewJob, event, everywhere, faults
from tests.chaos.ledger import Ledger
from tests.chaos.s3_gate import S3Gate, Trap
from tests.chaos.topic_reader import TopicReader

PAIRS = "tests.jobs.spark.apps.pairs"


@dataclass(frozen=True)
class Kill:
    """One end of a driver: a point of the driver's own, or a write of Spark's log."""

    point: str = ""
    log: str = ""
    after: bool = False
    call: int = 2


# Each in the order of a micro-batch; every driver lives for a micro-batch or two.
KILLS = {
    "Spark's logs and Penstock's record": [
        Kill(log="offsets"),
        Kill(log="offsets", after=True),
        Kill("before the sinks"),
        Kill("after the sinks"),
        Kill("before the record"),
        Kill("after the record"),
        Kill(log="commits"),
        Kill(log="commits", after=True),
    ],
    "files": [
        Kill("before the files are composed"),
        Kill("before the manifest"),
        Kill("after the manifest"),
        Kill("before the files are published"),
        Kill("between two files"),
        Kill("before the chunks are taken away"),
    ],
    "the topic": [
        Kill("after the topic's manifest"),
        Kill("in a transaction"),
        Kill("after a transaction"),
        Kill("after the topic"),
    ],
}


# Nine drivers one after another, each with an engine to start: more than other tests get where the machine has other work too.
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("where", KILLS)
def test_a_driver_killed_at_every_point_loses_nothing_and_doubles_nothing_in_any_sink(
    new_job: NewJob, tmp_path: Path, aws: EmulatedAws, where: str, ledger: Ledger
) -> None:
    """One job, killed at one point after another, with readers that never look away."""
    with S3Gate(aws.endpoint) as gate, PostgresServer(tmp_path / "postgres") as postgres, RedisServer(tmp_path / "redis") as cache:
        postgres.run("CREATE TABLE rows (name text PRIMARY KEY, length int NOT NULL)")
        table = {"postgres": {"connection": "shop", "table": "rows", "key": ["name"]}}
        hashes = {"redis": {"connection": "cache", "key": ["name"], "prefix": "row:"}}
        job = everywhere(new_job, "exactly-once", table=table, hashes=hashes)
        job.endpoint, job.connections = gate.endpoint, {"shop": postgres.url, "cache": cache.url}
        with (
            BucketReader(job.s3, OUTPUT, job.name, "name") as files,
            TopicReader(job.kafka.address, f"{job.name}-topic", "name") as topic,
        ):
            for kill in KILLS[where]:
                _killed(job, gate, kill)
            assert 0 < len(topic.rows) < len(ROWS), "it was killed midway"
            gate.open(None)
            with job.driver() as driver:
                driver.until_read(job.ends)
        ledger.times(len(KILLS[where]))
        ledger.compared(ROWS, topic.rows)
        assert faults(job, files, ROWS, "name") == []
        assert topic.faults == [] and topic.rows == Counter(ROWS)
        assert sorted(str(row["name"]) for row in postgres.rows("rows")) == sorted(ROWS)
        with redis.from_url(cache.url, decode_responses=True) as client:
            assert {key.removeprefix("row:") for key in client.scan_iter("row:*")} == ROWS
    assert recorded_run.count_records(job.kafka.address, f"{job.name}-errors") == 12
    assert kafka_topics.read(job.kafka.address, f"{job.name}-late") == []
    assert job.open_uploads() == 0
    assert files.looks > 10


def _killed(job: Job, gate: S3Gate, kill: Kill) -> None:
    """Runs a driver up to its end."""
    doom = {"point": kill.point, "call": kill.call} if kill.point else {}
    with job.driver(**doom) as doomed:
        pid = doomed.pid
        gate.open(Trap(kill.log, kill.call, kill.after, lambda: os.kill(pid, signal.SIGKILL)) if kill.log else None)
        assert doomed.end() == -signal.SIGKILL, kill


@pytest.mark.timeout(5 * 3_600)
def test_a_driver_killed_at_random_loses_nothing_and_doubles_nothing(
    new_job: NewJob, chaos_seed: int, chaos_kills: int, ledger: Ledger
) -> None:
    """20 kills, with ``--full`` 200; each driver lives for a micro-batch or two, of which there are more."""
    random_, kills = random.Random(chaos_seed), 2 * chaos_kills
    job = everywhere(new_job, "exactly-once", records_a_trigger=max(1, len(ROWS) // (2 * kills)))
    points = sorted({kill.point for some in KILLS.values() for kill in some if kill.point})
    with (
        BucketReader(job.s3, OUTPUT, job.name, "name") as files,
        TopicReader(job.kafka.address, f"{job.name}-topic", "name") as topic,
    ):
        for number in range(kills):
            point = random_.choice([*points, "before a call of S3", "after a call of S3"])
            call = random_.randrange(8, 40) if "call of S3" in point else random_.choice([1, 2])
            print(f"kill {number + 1} of {kills}: {point}, {call}", flush=True)
            with job.driver(point=point, call=call) as doomed:
                assert doomed.end() == -signal.SIGKILL
        assert len(topic.rows) < len(ROWS), "it was killed midway"
        with job.driver() as driver:
            driver.until_read(job.ends)
    ledger.times(kills)
    ledger.compared(ROWS, topic.rows)
    assert faults(job, files, ROWS, "name") == []
    assert topic.faults == [] and topic.rows == Counter(ROWS)
    assert recorded_run.count_records(job.kafka.address, f"{job.name}-errors") == 12
    assert job.open_uploads() == 0


@pytest.mark.parametrize("seed", [1])
def test_a_join_killed_three_times_anywhere_makes_each_pair_once(new_job: NewJob, seed: int) -> None:
    random_ = random.Random(seed)
    job = new_job(PAIRS)
    names = [f"pair-{number}" for number in range(700)]
    job.source("a", [event(name, second) for second, name in enumerate(names)])
    # A pair's two events are half a minute apart, so that most pairs come of state that a kill has to leave whole.
    job.source("b", [event(name, second + 30) for second, name in enumerate(names)])
    job.specify(records_a_trigger=80)
    with BucketReader(job.s3, OUTPUT, job.name, "left") as reader:
        for _ in range(3):
            point = random_.choice(["before a call of S3", "after a call of S3"])
            with job.driver(point=point, call=random_.randrange(8, 35)) as doomed:
                assert doomed.end() == -signal.SIGKILL
        with job.driver() as driver:
            driver.until_read(job.ends)
    assert faults(job, reader, set(names), "left") == []
    assert all(row["left"] == row["right"] for row in job.output())
    assert kafka_topics.read(job.kafka.address, f"{job.name}-late") == []
    assert job.open_uploads() == 0


def test_sinks_that_are_known_to_be_bad_are_caught(new_job: NewJob) -> None:
    """The same harness on files published before they are decided and on a topic at least once: it has to say so, or it proves nothing."""
    job = everywhere(new_job, "at-least-once")
    with (
        BucketReader(job.s3, OUTPUT, job.name, "name") as files,
        TopicReader(job.kafka.address, f"{job.name}-topic", "name") as topic,
    ):
        # The second micro-batch fills the first file: before that there is nothing that could be published too early.
        for point, call in (("before the manifest", 2), ("after the sinks", 3)):
            with job.driver(sink=CARELESS, point=point, call=call) as doomed:
                assert doomed.end() == -signal.SIGKILL
        with job.driver(sink=CARELESS) as driver:
            driver.until_read(job.ends)
    found = faults(job, files, ROWS, "name")
    assert any("was seen twice" in fault for fault in found)
    assert any(fault.endswith("rows lie there twice") for fault in found)
    assert any("was seen twice" in fault for fault in topic.faults)
    assert not any("is lost" in fault for fault in found) and set(topic.rows) == ROWS
