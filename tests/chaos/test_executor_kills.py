"""Executors of a real cluster killed, frozen and decommissioned: no row lost, none twice, for readers that never look away."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis

from penstock.scripts.local import kafka_topics
from penstock.scripts.local.servers.postgres_server import PostgresServer
from penstock.scripts.local.servers.redis_server import RedisServer
from penstock.sizing.load.spot_loss import NOTICE_S
from tests.chaos.apps.states import BLOCKS
from tests.chaos.bucket_reader import BucketReader
from tests.chaos.doomed_driver import CARELESS_TASKS
from tests.chaos.doomed_executor import POINTS
from tests.chaos.incoming_rows import FlowRows, StateRows
from tests.chaos.killed_cluster import ROWS_A_BATCH, KilledCluster, Strike, Victim
from tests.chaos.killed_job import OUTPUT, NewJob
from tests.chaos.ledger import Ledger
from tests.chaos.recovery_table import record, recovery_table
from tests.chaos.topic_reader import TopicReader

# A reader that looks more often takes the emulator's time from the job.
_PAUSE_S = 0.5


@dataclass
class Flow:
    """A running `tests.chaos.apps.flow` with its readers."""

    killed: KilledCluster
    rows: FlowRows
    readers: dict[str, BucketReader | TopicReader]
    postgres: PostgresServer
    cache: RedisServer
    reading: ExitStack

    def faults(self) -> list[str]:
        """What is wrong with what the readers saw and with what lies there in the end."""
        self.reading.close()
        found = [f"{name}: {fault}" for name, reader in self.readers.items() for fault in reader.faults]
        expected = Counter(self.rows.expected)
        answers = {name: {row: str(last["answer"]) for row, last in reader.last.items()} for name, reader in self.readers.items()}
        found += [
            f"{name}: lost {sorted(expected - reader.rows)[:5]}, more {sorted(reader.rows - expected)[:5]}"
            for name, reader in self.readers.items()
            if reader.rows != expected
        ]
        answers["table"] = {str(row["name"]): str(row["answer"]) for row in self.postgres.rows("rows")}
        with redis.from_url(self.cache.url, decode_responses=True) as client:
            answers["hashes"] = {key.removeprefix("row:"): client.hgetall(key)["answer"] for key in client.scan_iter("row:*")}
        first = answers["out"]
        found += [f"{name} has other answers than the files" for name, some in answers.items() if some != first]
        return found + self._counts()

    def tell(self, ledger: Ledger) -> None:
        """What was compared, and how the job came through."""
        for reader in self.readers.values():
            ledger.compared(self.rows.expected, reader.rows)
        record(self.killed, ledger)

    def _counts(self) -> list[str]:
        record = self.killed.record
        tags = {tag: count for tag, count in record["totalTags"].items() if count}
        found = [] if tags == self.rows.tags else [f"the record counts {tags}, not {self.rows.tags}"]
        rows_in = sum(record["totalRowsIn"].values())
        return found if rows_in == self.rows.rows_in else [*found, f"the record counts {rows_in} records, not {self.rows.rows_in}"]


@contextmanager
def _flow(new_job: NewJob, folder: Path, executors: int = 2, conf: Mapping[str, str] | None = None, **doom: Any) -> Iterator[Flow]:
    job = new_job("tests.chaos.apps.flow")
    rows = FlowRows(job.open_source("a", 2))
    topic = f"{job.name}-topic"
    kafka_topics.create(job.kafka.address, {topic: 3, f"{job.name}-failed": 1})
    job.specify(
        ROWS_A_BATCH,
        whole={"files": {"path": f"{job.name}-whole", "bucketBy": "none", "roll": {"size": "1k", "interval": "1ms"}}},
        topic={"kafka": {"topic": topic, "partitions": 3, "key": ["name"], "guarantee": "exactly-once"}},
        failed={"kafka": {"topic": f"{job.name}-failed"}},
        table={"postgres": {"connection": "shop", "table": "rows", "key": ["name"], "version": "number"}},
        hashes={"redis": {"connection": "cache", "key": ["name"], "prefix": "row:"}},
    )
    with ExitStack() as stack:
        postgres = stack.enter_context(PostgresServer(folder / "postgres"))
        cache = stack.enter_context(RedisServer(folder / "redis"))
        postgres.run("CREATE TABLE rows (name text PRIMARY KEY, number bigint NOT NULL, answer text NOT NULL)")
        job.connections = {"shop": postgres.url, "cache": cache.url}
        reading = stack.enter_context(ExitStack())
        readers: dict[str, BucketReader | TopicReader] = {
            "out": reading.enter_context(BucketReader(job.s3, OUTPUT, job.name, "name", _PAUSE_S)),
            "whole": reading.enter_context(BucketReader(job.s3, OUTPUT, f"{job.name}-whole", "name", _PAUSE_S)),
            "topic": reading.enter_context(TopicReader(job.kafka.address, topic, "name")),
        }
        killed = stack.enter_context(KilledCluster(job, folder, rows.next, executors, conf or {}, doom))
        yield Flow(killed, rows, readers, postgres, cache, reading)


# Where a task's side-output rows are too many to come with its result.
_STAGED = "PUT .*/penstock/aside/"

# Those of a group hit one micro-batch, in its order, where it has them all: so they cost the time of one.
_GROUPS = [
    [Strike("while it reads", 2), Strike("before a chunk"), Strike("in a transaction")],
    [Strike("before a response", 10), Strike("after a chunk"), Strike("after a transaction")],
    [Strike("after a response", 20), Strike("before a part is uploaded"), Strike("in a transaction of the table")],
    [Strike("before a page of the journal"), Strike("after a part is uploaded"), Strike("after a transaction of the table")],
    [Strike("after a page of the journal"), Strike("between two files"), Strike("before the hashes")],
    [Strike(_STAGED), Strike("PUT .*/state/0/"), Strike("after the hashes")],
    [
        Strike(_STAGED, after=True),
        Strike("PUT .*/state/0/", after=True),
        Strike("while it reads what the topic gets", victim="other"),
    ],
    # Only executors that are new have to read the state.
    [Strike("as a map task ends", victim="all"), Strike("GET .*/state/0/"), Strike("while it reads what the files get", 2)],
]


@pytest.mark.timeout(3_600)
def test_an_executor_killed_at_every_point_loses_nothing_and_doubles_nothing_in_any_sink(
    new_job: NewJob, tmp_path: Path, ledger: Ledger
) -> None:
    """One job, an executor killed at one point after another."""
    with _flow(new_job, tmp_path) as flow:
        for group in _GROUPS:
            flow.killed.strike(*group)
        flow.killed.finish()
        assert flow.faults() == []
        flow.tell(ledger)
        print(recovery_table(flow.killed, "executors killed at fixed points"))
    assert len(flow.killed.events().removed) >= len(flow.killed.struck)


_STATES_STRIKES = {
    "rocksdb": [
        Strike("in a keyed function", 5),
        Strike("in a timer"),
        Strike("as rows are grouped", victim="other"),
        *(Strike(rf"PUT .*/state/{operator}/.*changelog", after=after) for operator in range(7) for after in (False, True)),
        Strike("GET .*/state/"),
    ],
    "memory": [
        *(Strike(rf"PUT .*/state/{operator}/.*delta", after=after) for operator in range(4) for after in (False, True)),
        Strike("GET .*/state/"),
    ],
}


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("backend", _STATES_STRIKES)
def test_an_executor_killed_while_it_commits_the_state_of_any_block_changes_no_result(
    new_job: NewJob, tmp_path: Path, backend: str, ledger: Ledger
) -> None:
    """One job with a block of each kind; the state in memory has those that need no RocksDB."""
    job = new_job("tests.chaos.apps.states")
    blocks = BLOCKS if backend == "rocksdb" else {name: BLOCKS[name] for name in ("windows", "sessions", "duplicates", "pairs")}
    rows = StateRows({source: job.open_source(source, 2) for sources in blocks.values() for source in sources})
    job.specify(ROWS_A_BATCH, state={"backend": backend})
    with BucketReader(job.s3, OUTPUT, job.name, "name", _PAUSE_S) as reader, KilledCluster(job, tmp_path, rows.next) as killed:
        for group in _threes(_STATES_STRIKES[backend]):
            killed.strike(*group)
        killed.finish(rows.flush())
        print(recovery_table(killed, f"executors killed in stateful blocks, state in {backend}"))
        record(killed, ledger)
    found = Counter(f"{row['block']} {row['name']}" for row in job.output())
    ledger.compared(rows.expected, found)
    assert reader.faults == []
    assert (sorted(rows.expected - found.keys()), sorted(found - Counter(rows.expected))) == ([], [])
    assert {source: killed.record["totalRowsIn"][source] for source in rows.rows_in} == rows.rows_in
    assert killed.record["totalTags"]["data"] == len(rows.expected)


@pytest.mark.timeout(3_600)
def test_several_executors_at_once_and_nodes_with_their_disks(new_job: NewJob, tmp_path: Path, ledger: Ledger) -> None:
    """Map outputs and cached rows go with a disk: Spark finds out when it fetches them."""
    with _flow(new_job, tmp_path, executors=3) as flow:
        for strike in (
            Strike("while it reads", victim="two"),
            Strike("before a page of the journal", victim="all"),
            Strike("after a chunk", victim="two"),
            Strike("in a transaction", victim="all"),
            Strike("after a transaction", victim="jvm"),
            Strike("while it reads what the topic gets", victim="other nodes"),
            Strike("before a part is uploaded", victim="other nodes"),
            Strike("in a transaction of the table", victim="node"),
        ):
            flow.killed.strike(strike)
        flow.killed.finish()
        assert flow.faults() == []
        flow.tell(ledger)
        print(recovery_table(flow.killed, "several executors, and nodes with their disks"))
    assert flow.killed.events().repeated_stages > 0


_FROZEN = [
    Strike("before a response"),
    Strike("before a page of the journal"),
    Strike(_STAGED),
    Strike(r"PUT .*/state/0/"),
    Strike("before a chunk"),
    Strike("before a part is uploaded"),
    Strike("in a transaction"),
    Strike("in a transaction of the table"),
    Strike("before the hashes"),
]


@pytest.mark.timeout(3_600)
def test_an_executor_that_was_frozen_until_its_tasks_ran_elsewhere_writes_nothing_that_counts(
    new_job: NewJob, tmp_path: Path, ledger: Ledger
) -> None:
    # Scaled down from two minutes.
    conf = {"spark.network.timeout": "20s", "spark.network.timeoutInterval": "2s", "spark.executor.heartbeatInterval": "1s"}
    with _flow(new_job, tmp_path, conf=conf) as flow:
        for strike in _FROZEN:
            flow.killed.freeze(strike)
        flow.killed.finish()
        assert flow.faults() == []
        flow.tell(ledger)
        print(recovery_table(flow.killed, "frozen executors"))
    assert sum("heartbeat" in reason.lower() for reason in flow.killed.events().removed) >= len(_FROZEN)


@pytest.mark.timeout(3_600)
def test_two_attempts_of_a_task_at_the_same_time_write_it_once(new_job: NewJob, tmp_path: Path, ledger: Ledger) -> None:
    conf = {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.quantile": "0.3",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.task.duration.threshold": "3s",
    }
    with _flow(new_job, tmp_path, conf=conf) as flow:
        for strike in _FROZEN:
            if strike.point in POINTS:
                flow.killed.outrun(strike)
        flow.killed.finish()
        assert flow.faults() == []
        flow.tell(ledger)
    assert flow.killed.events().speculative >= len(flow.killed.struck)


# A hundredth of a spot notice's two minutes would be less than a task; a twelfth lets an executor drain.
_NOTICE_S = NOTICE_S / 12


@pytest.mark.timeout(3_600)
def test_a_node_lost_after_its_notice(new_job: NewJob, tmp_path: Path, ledger: Ledger) -> None:
    conf = {
        "spark.decommission.enabled": "true",
        "spark.storage.decommission.enabled": "true",
        "spark.storage.decommission.rddBlocks.enabled": "true",
        "spark.storage.decommission.shuffleBlocks.enabled": "true",
    }
    with _flow(new_job, tmp_path, conf=conf) as flow:
        for point in ("while it reads", "after a chunk", "in a transaction"):
            flow.killed.notice(Strike(point), _NOTICE_S)
        flow.killed.finish()
        assert flow.faults() == []
        flow.tell(ledger)
        print(recovery_table(flow.killed, f"nodes lost after a notice of {_NOTICE_S:g} s, 1:12"))
    assert any("decommission" in reason.lower() for reason in flow.killed.events().removed)


# The state is read only by executors that are new: a strike that waits for that comes after another one of its group.
def _threes(strikes: Sequence[Strike]) -> Iterator[Sequence[Strike]]:
    return (strikes[start : start + 3] for start in range(0, len(strikes), 3))


# The points of a sink, besides those that all rows pass.
_SINKS = {"files": ("chunk", "part", "files"), "topic": ("topic", "in a transaction", "after a transaction")}


@pytest.mark.timeout(5 * 3_600)
@pytest.mark.parametrize("sink", _SINKS)
def test_executors_killed_at_random_lose_nothing_and_double_nothing(
    new_job: NewJob, tmp_path: Path, sink: str, chaos_seed: int, chaos_kills: int, ledger: Ledger
) -> None:
    """20 kills, half of them for each exactly-once sink; with ``--full`` 100 for each."""
    random_ = random.Random(f"{chaos_seed} {sink}")
    print(f"--chaos-seed {chaos_seed}, {chaos_kills} kills, {sink}")
    own = [point for point in POINTS if any(word in point for word in _SINKS[sink]) and "table" not in point]
    general = ["while it reads", "before a page of the journal", "as a map task ends"]
    with _flow(new_job, tmp_path, executors=3) as flow:
        # Up to three in a micro-batch: Spark ends a query whose task has failed four times.
        for group in _threes([_any_strike(random_, own, general) for _ in range(chaos_kills)]):
            flow.killed.strike(*group)
        flow.killed.finish()
        assert flow.faults() == []
        flow.tell(ledger)
        print(recovery_table(flow.killed, f"killed at random, {sink}, seed {chaos_seed}"))


def _any_strike(random_: random.Random, own: Sequence[str], general: Sequence[str]) -> Strike:
    victim: Victim = random_.choice(["own", "own", "other", "two", "all", "jvm", "node", "other nodes"])
    where = random_.random()
    if where < 0.3:
        return Strike("(GET|PUT|POST|HEAD|DELETE) ", random_.randrange(1, 30), after=random_.random() < 0.5, victim=victim)
    return Strike(random_.choice(own if where < 0.8 else general), random_.randrange(1, 4), victim=victim)


@pytest.mark.timeout(3_600)
def test_a_sink_that_is_known_to_be_bad_is_caught(new_job: NewJob, tmp_path: Path) -> None:
    """The same harness on files that each attempt of a task publishes: it has to say so, or it proves nothing."""
    with _flow(new_job, tmp_path, sink=CARELESS_TASKS) as flow:
        flow.killed.strike(Strike("after a chunk"))
        flow.killed.finish()
        found = flow.faults()
    assert any("out: row" in fault and "was seen twice" in fault for fault in found)
    assert not any(fault.startswith(("topic", "table", "hashes")) for fault in found)
