"""Two real drivers on one checkpoint: one is frozen at every point of a micro-batch, another one takes over, and the first is woken."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from penstock.scripts.local import kafka_topics
from penstock.scripts.local.servers.postgres_server import PostgresServer
from penstock.sizing.errors import PenstockError
from tests.chaos.bucket_reader import BucketReader
from tests.chaos.doomed_driver import CARELESS, FREEZE, IGNORE_LOSS, TAKE
from tests.chaos.frozen_driver import FreezingGate, failure, freeze, is_frozen, wake
from tests.chaos.killed_job import LIMIT_S, OUTPUT, DoomedDriver, Job, NewJob, event, faults
from tests.chaos.ledger import Ledger
from tests.chaos.moving_reader import MovingReader
from tests.chaos.s3_gate import Trap
from tests.chaos.slots import SLOTS
from tests.chaos.test_kills import KILLS, PAIRS, Kill
from tests.chaos.topic_reader import TopicReader

SLOTS_APP = "tests.chaos.slots"
# The shortest that a lease may be.
LEASE_S = 3
ROWS_A_BATCH = 50
# A driver is frozen in its second micro-batch or its third; the next one repeats it.
BATCHES_A_DRIVER = 3
# How often a driver is looked at until it is frozen.
LOOK_S = 0.2
STOPPED = {"JOB-081", "JOB-083"}
TABLE = "CREATE TABLE slots (slot int PRIMARY KEY, number int NOT NULL, name text NOT NULL)"


def _job(new_job: NewJob, postgres: PostgresServer, drivers: int) -> tuple[Job, set[str]]:
    """A job with enough input for some drivers, and the names of its rows."""
    postgres.run("DROP TABLE IF EXISTS slots")
    postgres.run(TABLE)
    job = new_job(SLOTS_APP)
    names = [f"row-{number}" for number in range(ROWS_A_BATCH * BATCHES_A_DRIVER * drivers)]
    job.source("a", [event(name, second) for second, name in enumerate(names)])
    topic = f"{job.name}-topic"
    kafka_topics.create(job.kafka.address, {topic: 3})
    exactly_once = {"kafka": {"topic": topic, "partitions": 3, "key": ["name"], "guarantee": "exactly-once"}}
    table = {"postgres": {"connection": "shop", "table": "slots", "key": ["slot"], "version": "number"}}
    job.specify(ROWS_A_BATCH, topic=exactly_once, table=table)
    job.connections = {"shop": postgres.url}
    job.lease_s = LEASE_S
    # A local master does not repeat a task, a cluster does so three times: a woken task may fence one of its successor's.
    job.master = "local[2,4]"
    return job, set(names)


@dataclass
class Succession:
    """Drivers of one job, each of which takes over from the one before it while that one is frozen."""

    job: Job
    stack: contextlib.ExitStack
    frozen: DoomedDriver | None = None
    gate: FreezingGate | None = None

    def freeze_at(self, kill: Kill, **doom: Any) -> None:
        """The next driver takes over, the one before it is woken, and this one is frozen at a point."""
        gate = self.stack.enter_context(FreezingGate(self.job.aws.endpoint))
        self.job.endpoint = gate.endpoint
        point = {"point": kill.point, "call": kill.call, "action": FREEZE} if kill.point else {}
        driver = self.stack.enter_context(self.job.driver(**point, **doom))
        # A frozen process can't stop; the last callback runs first.
        self.stack.callback(wake, driver.pid)
        self.stack.callback(gate.resume)
        gate.open(Trap(kill.log, kill.call, kill.after, lambda: freeze(driver.pid)) if kill.log else None)
        end = time.monotonic() + 2 * LIMIT_S
        while not (gate.sprung.is_set() or is_frozen(driver.pid)):
            assert time.monotonic() < end, f"the driver was not frozen; see {driver.log}"
            if (told := driver.next_event(LOOK_S)) and told["event"] == "committed":
                self._wake()
        # Its other processes too.
        freeze(driver.pid)
        self._wake()
        self.frozen, self.gate = driver, gate

    def end(self, **doom: Any) -> None:
        """The last driver takes over, and reads to the end."""
        self.job.endpoint = self.job.aws.endpoint
        with self.job.driver(**doom) as driver:
            while driver.event()["event"] != "committed":
                pass
            self._wake()
            driver.until_read(self.job.ends)

    def _wake(self) -> None:
        """Wakes the frozen driver, which goes on and has to stop by itself."""
        if self.frozen is None or self.gate is None:
            return
        wake(self.frozen.pid)
        self.gate.resume()
        assert failure(self.frozen) in STOPPED, self.frozen.log
        self.frozen = None


def _wrong(job: Job, postgres: PostgresServer, files: BucketReader, topic: TopicReader, names: set[str]) -> list[str]:
    """What is wrong with the sinks in which a driver that was frozen changes nothing."""
    expected = Counter(names)
    found = [*files.faults, *topic.faults]
    for place, seen in (("files", files.rows), ("the topic", topic.rows)):
        found.extend(f"{place}: {row} was seen {seen[row]} times" for row in expected | seen if seen[row] != expected[row])
    numbers = [int(name.removeprefix("row-")) for name in names]
    last = {slot: max(number for number in numbers if number % SLOTS == slot) for slot in range(SLOTS)}
    rows = {row["slot"]: row["number"] for row in postgres.rows("slots")}
    if rows != last:
        found.append(f"the table has {rows} instead of {last}")
    return found


# In the order of a micro-batch; each driver takes over from the one before it, which is frozen at the point before.
GROUPS = {
    "Spark's logs": [kill for kill in KILLS["Spark's logs and Penstock's record"] if kill.log],
    "the sinks and Penstock's record": [kill for kill in KILLS["Spark's logs and Penstock's record"] if kill.point],
    "files": KILLS["files"],
    "the topic": KILLS["the topic"],
}


# Up to seven drivers one after another, each with an engine to start.
@pytest.mark.timeout(2_400)
# The files are also taken away where they are published.
@pytest.mark.parametrize(("where", "reader"), [*((where, BucketReader) for where in GROUPS), ("files", MovingReader)])
def test_a_driver_frozen_beyond_its_lease_at_every_point_harms_nothing_when_it_is_woken_and_stops_with_a_code(
    new_job: NewJob, tmp_path: Path, where: str, reader: type[BucketReader], ledger: Ledger
) -> None:
    with PostgresServer(tmp_path / "postgres") as postgres, contextlib.ExitStack() as stack:
        job, names = _job(new_job, postgres, len(GROUPS[where]) + 1)
        files = stack.enter_context(reader(job.s3, OUTPUT, job.name, "name"))
        topic = stack.enter_context(TopicReader(job.kafka.address, f"{job.name}-topic", "name"))
        drivers = Succession(job, stack)
        for kill in GROUPS[where]:
            drivers.freeze_at(kill)
        assert 0 < len(topic.rows) < len(names), "it was frozen midway"
        drivers.end()
        stack.close()
        assert _wrong(job, postgres, files, topic, names) == []
        ledger.times(len(GROUPS[where]))
        _count(ledger, names, files, topic)
    assert job.open_uploads() == 0


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("backend", ["rocksdb", "memory"])
def test_a_join_whose_driver_is_frozen_makes_each_pair_once(new_job: NewJob, backend: str, ledger: Ledger) -> None:
    job = new_job(PAIRS)
    names = [f"pair-{number}" for number in range(700)]
    job.source("a", [event(name, second) for second, name in enumerate(names)])
    job.source("b", [event(name, second + 30) for second, name in enumerate(names)])
    job.specify(80, state={"backend": backend})
    job.lease_s = LEASE_S
    with contextlib.ExitStack() as stack:
        reader = stack.enter_context(BucketReader(job.s3, OUTPUT, job.name, "left"))
        drivers = Succession(job, stack)
        kills = (Kill(log="offsets", call=3), Kill("before the sinks", call=3), Kill("after the record"), Kill(log="commits", after=True))
        for kill in kills:
            drivers.freeze_at(kill)
        drivers.end()
        stack.close()
        assert faults(job, reader, set(names), "left") == []
        ledger.times(len(kills))
        ledger.compared(names, reader.rows)
    assert all(row["left"] == row["right"] for row in job.output())
    assert kafka_topics.read(job.kafka.address, f"{job.name}-late") == []


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("bypassed", [False, True])
def test_of_two_live_drivers_none_loses_or_doubles_anything(new_job: NewJob, tmp_path: Path, bypassed: bool, ledger: Ledger) -> None:
    """The second one takes a lease that is held; the first one learns of that, or neither of them ever does."""
    with PostgresServer(tmp_path / "postgres") as postgres, contextlib.ExitStack() as stack:
        job, names = _job(new_job, postgres, 6)
        files = stack.enter_context(BucketReader(job.s3, OUTPUT, job.name, "name"))
        topic = stack.enter_context(TopicReader(job.kafka.address, f"{job.name}-topic", "name"))
        first = stack.enter_context(job.driver(lease=IGNORE_LOSS) if bypassed else job.driver())
        while first.event()["event"] != "committed":
            pass
        second = stack.enter_context(job.driver(lease=IGNORE_LOSS if bypassed else TAKE))
        codes = _until_read_by_either(job, first, second)
        if len(codes) == 2:
            # Each stopped because of the other one.
            with job.driver() as third:
                third.until_read(job.ends)
        stack.close()
        assert _wrong(job, postgres, files, topic, names) == []
        ledger.times(1)
        _count(ledger, names, files, topic)
        assert set(codes) <= STOPPED
        assert codes or bypassed


def _count(ledger: Ledger, names: Collection[str], files: BucketReader, topic: TopicReader) -> None:
    for reader in (files, topic):
        ledger.compared(names, reader.rows)


def _until_read_by_either(job: Job, *drivers: DoomedDriver) -> list[str]:
    """Waits until one of the drivers has read everything, or all have failed; the codes of those that failed."""
    codes: dict[DoomedDriver, str] = {}
    end = time.monotonic() + 4 * LIMIT_S
    while len(codes) < len(drivers):
        assert time.monotonic() < end, [driver.log for driver in drivers]
        for driver in drivers:
            if driver in codes:
                continue
            try:
                told = driver.next_event(LOOK_S) or {"event": None}
            except PenstockError as error:
                codes[driver] = error.errors[0].code
                continue
            if told["event"] == "committed" and all(told["ends"].get(name, {}).get("0", 0) >= last for name, last in job.ends.items()):
                return list(codes.values())
    return list(codes.values())


@pytest.mark.timeout(900)
def test_a_sink_that_is_known_to_be_bad_is_caught(new_job: NewJob, tmp_path: Path) -> None:
    """Files published before they are decided: the same harness has to say so."""
    with PostgresServer(tmp_path / "postgres") as postgres, contextlib.ExitStack() as stack:
        job, names = _job(new_job, postgres, 2)
        files = stack.enter_context(BucketReader(job.s3, OUTPUT, job.name, "name"))
        topic = stack.enter_context(TopicReader(job.kafka.address, f"{job.name}-topic", "name"))
        drivers = Succession(job, stack)
        drivers.freeze_at(Kill("before the manifest"), sink=CARELESS)
        drivers.end(sink=CARELESS)
        stack.close()
        found = _wrong(job, postgres, files, topic, names)
    assert any("was seen twice" in fault for fault in found)
    assert not any("the topic" in fault or "the table" in fault for fault in found)
