"""Reading a topic by how many records a poll returns: ``python -m benchmarks.kafka_polls [--records N] [--rounds N] [--warm-up N]``.

A batch query in a session whose code is compiled reads all records of the topics of the job ``ads`` and does nothing with them. After
each poll, Spark's reader asks the broker for the first and the last offset of the partition, however many records the poll has returned.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.batch_session import batch_session, jvm
from benchmarks.streaming.contestants.place import Place
from benchmarks.streaming.rounds import Bench, Filled
from benchmarks.streaming.workloads import WORKLOADS
from penstock.jobs.sources.kafka import consumer_options
from penstock.jobs.spec import KafkaSource
from penstock.scripts.process.process_tree import ProcessTree
from penstock.scripts.progress import Steps

# Kafka's default is 500.
_POLLED = (500, 2_000, 10_000, 50_000)

# µs a record: CPU time of Spark's JVM, of the broker, and time.
Cost = tuple[float, float, float]


def main() -> None:
    """Prints what a record costs Spark and the broker."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=2, help="rounds before them (default: %(default)s)")
    options = parser.parse_args()
    steps = Steps()
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="penstock-kafka-polls-")))
        bench = held.enter_context(Bench(folder, folder / "logs", steps))
        filled = bench.fill(WORKLOADS["ads"], options.records)
        measured = _measured(bench, filled, options.rounds, options.warm_up, steps)
    print(f"{'max.poll.records':<18} {'Spark, CPU':>20} {'broker, CPU':>20} {'time':>20}   µs a record")
    for polled, costs in measured.items():
        print(f"{polled:<18,}", *(f"{_range(part):>20}" for part in zip(*costs, strict=True)))


def _range(values: tuple[float, ...]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def _measured(bench: Bench, filled: Filled, rounds: int, warm_up: int, steps: Steps) -> dict[int, list[Cost]]:
    measured: dict[int, list[Cost]] = defaultdict(list)
    place = bench.place("penstock", filled.workload, "kafka-polls", filled.records, filled.topics)
    with batch_session(place) as session, ProcessTree(jvm(session)) as spark, ProcessTree(bench.broker) as broker:
        for number in range(warm_up + rounds):
            for polled in _POLLED:
                with steps.at("read", f"{polled:,} records a poll") as step:
                    before = (spark.cpu_s(), broker.cpu_s(), time.monotonic())
                    _read(session, place, polled)
                    after = (spark.cpu_s(), broker.cpu_s(), time.monotonic())
                    spark_us, broker_us, us = ((end - begin) * 1e6 / filled.records for begin, end in zip(before, after, strict=True))
                    step.said = f"{polled:,} records a poll: {us:.2f} µs"
                if number >= warm_up:
                    measured[polled].append((spark_us, broker_us, us))
    return measured


def _read(session: SparkSession, place: Place, polled: int) -> None:
    topic = place.topics["events"]
    kafka = KafkaSource.model_validate({"topic": topic, "startingOffsets": "earliest", "properties": {"max.poll.records": polled}})
    reader = session.read.format("kafka").options(**consumer_options(kafka)).option("kafka.bootstrap.servers", place.brokers)
    reader.option("subscribe", topic).load().select("value").write.format("noop").mode("overwrite").save()


if __name__ == "__main__":
    main()
