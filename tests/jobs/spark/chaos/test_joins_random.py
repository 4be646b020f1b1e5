"""Joins of random rows against plain loops."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import datetime, timedelta

from penstock.jobs.blocks.joins import temporal_join
from penstock.jobs.local.recording import Recorded, Recording
from penstock.jobs.local.replay import Clock, judge
from penstock.scripts.local import recorded_run
from penstock.scripts.local.kafka_topics import Fed
from tests.jobs.spark.blocks import row, run, same
from tests.jobs.spark.running import CHECKPOINTS, Running, Surroundings, TestedJob
from tests.jobs.spark.test_joins import BORDER_MS, BOUND_MS, EPOCH, LOWER_MS, SLICE_MS, UPPER_MS, Pair, _event, _job, _pairs
from tests.jobs.spark.test_more_joins import Rows, _plain_versions, _sides, _two
from tests.jobs.spark.test_more_joins import _pairs as _pairs_of


def test_random_rows_give_the_pairs_of_a_plain_join_and_each_record_is_read_once(surroundings: Surroundings) -> None:
    """Times lie on the borders of the join's slices and on its bounds, a millisecond before and behind; some rows are late."""
    random_ = random.Random(20250405)
    job = _job(surroundings, "lopsided_left_pairs", partitions=2)
    counts = {source: [0, 0] for source in "ab"}
    with job.running() as running:
        for step in range(4):
            for source in "ab":
                for partition in range(2):
                    events = [_random_event(random_, source, step, number) for number in range(15)]
                    job.feed(source, *events, partition=partition)
                    counts[source][partition] += len(events)
            running.until_read(counts)
        # The last word of each partition, of a key of its own: all that waits is told.
        for source, partition in ((source, partition) for source in "ab" for partition in range(2)):
            job.feed(source, _event(f"last {source}", BORDER_MS + 3_600_000, key=f"{source}-{partition}"), partition=partition)
            counts[source][partition] += 1
        running.until_read(counts)
        recording = _recording(job, running, counts)
    expected, late = _plain_left_join(job, recording)
    assert late > 3 and any(right is None for _, right in expected), "the case is worth something"
    pairs = _pairs(job)
    assert pairs == expected, f"missing {expected - pairs}, unexpected {pairs - expected}"
    assert len(job.side_outputs("late")) == late
    assert sum(batch["rows"] for batch in running.committed) == sum(map(sum, counts.values())) == 244


def _random_event(random_: random.Random, source: str, step: int, number: int) -> dict[str, str]:
    # Half a slice a step, so that borders and what lies around them come in every other step.
    base_ms = BORDER_MS + step * SLICE_MS // 2
    apart_ms = random_.choice([0, LOWER_MS, UPPER_MS, -LOWER_MS, -UPPER_MS, random_.randrange(-20_000, 20_000)])
    edge_ms = random_.choice([-1, 0, 0, 1])
    return _event(f"{source}{step}-{number}-{random_.randrange(10**9)}", base_ms + apart_ms + edge_ms, key=f"k{random_.randrange(6)}")


def _recording(job: TestedJob, running: Running, counts: dict[str, list[int]]) -> Recording:
    fed = {job.topics[source]: Fed(len(ends), sum(ends), dict(enumerate(ends)), frozenset()) for source, ends in counts.items()}
    read = running.reading["offsets"].values()
    starts = {topic: {int(n): first for n, first in ends.items()} for topics in read for topic, ends in topics.items()}
    return recorded_run.recording(job.around.s3, job.around.brokers, (CHECKPOINTS, f"{job.name}/checkpoints/1"), fed, starts)


def _plain_left_join(job: TestedJob, recording: Recording) -> tuple[Counter[Pair], int]:
    """The pairs of accepted rows by two loops, and how many rows were late; the rows of the last word have no end and are left out."""

    def time_ms(record: Recorded) -> int:
        return round((datetime.fromisoformat(json.loads(record.value or b"")["at"]) - EPOCH) / timedelta(milliseconds=1))

    clock = Clock(time_ms, BOUND_MS, 10**12)
    judged = list(judge(recording, dict.fromkeys(job.topics.values(), clock)))
    rows = {
        source: [json.loads(e.record.value or b"") | {"ms": e.time_ms} for e in judged if e.topic == topic and not e.late]
        for source, topic in job.topics.items()
    }
    pairs: Counter[Pair] = Counter()
    for left in rows["a"]:
        partners = [r["name"] for r in rows["b"] if r["key"] == left["key"] and LOWER_MS <= r["ms"] - left["ms"] <= UPPER_MS]
        pairs.update((left["name"], partner) for partner in partners or [None] if left["name"] != "last a")
    return pairs, sum(event.late for event in judged)


def test_random_versions_are_those_of_a_plain_loop_also_after_a_restart(surroundings: Surroundings) -> None:
    random_ = random.Random(20250405)

    def step(number: int, side: str) -> Rows:
        """Rows of which none is late: a step is as long as the bound, and the next begins 10 s later."""
        times = [10 * number + random_.randrange(30) for _ in range(15)]
        deleted = [side == "r" and random_.random() < 0.2 for _ in times]
        names = [f"{side}{number}-{place}" for place in range(15)]
        return [
            row(f"{t}", k=random_.choice("abc"), n=n, v=15 * number + v, _deleted=d)
            for v, (t, n, d) in enumerate(zip(times, names, deleted, strict=True))
        ]

    orders, versions = ([step(number, side) for number in range(4)] for side in "lr")
    last = row("5:00", k="end", n="end", v=0, _deleted=False)
    expected = _plain_versions([one for rows in orders for one in rows], [one for rows in versions for one in rows])
    assert 5 < sum(one["r"] is None for one in expected) < 50, "the case is worth something"
    schema, name = "k STRING, n STRING, v BIGINT, _deleted BOOLEAN", surroundings.folder.name.replace("_", "-")
    join = lambda streams: temporal_join(*_sides(streams, order="v"), how="left")  # noqa: E731
    first = run(surroundings, _two(orders[:2], versions[:2], schema, bound_s=30), join, name=name)
    then = run(surroundings, _two([*orders[2:], [last]], [*versions[2:], [last]], schema, bound_s=30), join, name=name)
    same([*_pairs_of(first), *_pairs_of(then)], expected)
    assert 0 < len(first.rows) < 60, "some are told before the restart and some after it"
    assert not first.side_outputs and not then.side_outputs
