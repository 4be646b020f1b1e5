"""What settings of Kafka's clients cost Spark and the broker: ``python -m benchmarks.kafka_clients [--records N] [--rounds N]``.

Batch queries in a session whose code is compiled. One reads all records of the topics of the job ``ads``, by how many a poll returns, and
does nothing with them. The other writes as many records of 100 bytes with a key to a topic of two partitions, by how long the producer
waits for more (``linger.ms``), the size of its batches in KiB (``batch.size``) and compression.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.batch_session import batch_session, jvm
from benchmarks.streaming.contestants.place import Place
from benchmarks.streaming.rounds import Bench
from benchmarks.streaming.workloads import WORKLOADS
from penstock.jobs.sources.kafka import consumer_options
from penstock.jobs.spec import KafkaSource
from penstock.scripts.process.process_tree import ProcessTree
from penstock.scripts.progress import Steps

# Kafka's default is 500.
_POLLED = (500, 2_000, 10_000, 50_000)
# linger.ms, batch.size in KiB, compression.type. Kafka's defaults are 0, 5 from Kafka 4.0 on, 16 and none.
_WRITTEN = ((0, 16, "none"), (5, 16, "none"), (0, 128, "none"), (0, 16, "lz4"), (0, 128, "lz4"), (0, 128, "zstd"), (0, 512, "lz4"))

# µs a record: CPU time of Spark's JVM, of the broker, and time.
Cost = tuple[float, float, float]
Query = Callable[[SparkSession, Place], None]


def main() -> None:
    """Prints what a record costs Spark and the broker."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=2, help="rounds before them (default: %(default)s)")
    options = parser.parse_args()
    steps = Steps()
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="penstock-kafka-clients-")))
        bench = held.enter_context(Bench(folder, folder / "logs", steps))
        filled = bench.fill(WORKLOADS["ads"], options.records)
        place = bench.place("penstock", filled.workload, "kafka-clients", filled.records, filled.topics)
        measured = _measured(place, bench.broker, _queries(options.records), (options.warm_up, options.rounds), steps)
    print(f"{'':<40} {'Spark, CPU':>20} {'broker, CPU':>20} {'time':>20}   µs a record")
    for name, costs in measured.items():
        print(f"{name:<40}", *(f"{_range(part):>20}" for part in zip(*costs, strict=True)))


def _range(values: tuple[float, ...]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def _queries(records: int) -> Mapping[str, Query]:
    reads = {f"read, {polled:,} records a poll": partial(_read, {"max.poll.records": polled}) for polled in _POLLED}
    writes = {
        f"write, linger {linger} ms, {kib} KiB, {codec}": partial(
            _write, {"linger.ms": linger, "batch.size": kib * 1024, "compression.type": codec}, records
        )
        for linger, kib, codec in _WRITTEN
    }
    return {**reads, **writes}


def _measured(place: Place, broker: int, queries: Mapping[str, Query], rounds: tuple[int, int], steps: Steps) -> dict[str, list[Cost]]:
    measured: dict[str, list[Cost]] = defaultdict(list)
    warm_up, counted = rounds
    with batch_session(place) as session, ProcessTree(jvm(session)) as spark, ProcessTree(broker) as kafka:
        for number in range(warm_up + counted):
            for name, query in queries.items():
                with steps.at("query", name) as step:
                    before = (spark.cpu_s(), kafka.cpu_s(), time.monotonic())
                    query(session, place)
                    after = (spark.cpu_s(), kafka.cpu_s(), time.monotonic())
                    spark_us, broker_us, us = ((end - begin) * 1e6 / place.records for begin, end in zip(before, after, strict=True))
                    step.said = f"{name}: {us:.2f} µs"
                if number >= warm_up:
                    measured[name].append((spark_us, broker_us, us))
    return measured


def _read(properties: Mapping[str, int], session: SparkSession, place: Place) -> None:
    topic = place.topics["events"]
    kafka = KafkaSource.model_validate({"topic": topic, "startingOffsets": "earliest", "properties": properties})
    reader = session.read.format("kafka").options(**consumer_options(kafka)).option("kafka.bootstrap.servers", place.brokers)
    reader.option("subscribe", topic).load().select("value").write.format("noop").mode("overwrite").save()


def _write(properties: Mapping[str, int | str], records: int, session: SparkSession, place: Place) -> None:
    rows = session.range(0, records, 1, 4)
    written = rows.selectExpr(
        "CAST(id % 1000 AS STRING) AS key",
        """concat('{"campaign_id":"c', id % 100, '","start_ms":', 1760000000000 + id, ',"views":', id, ',"region":"eu-west"}') AS value""",
    )
    options = {f"kafka.{name}": str(value) for name, value in properties.items()}
    writer = written.write.format("kafka").options(**options).option("kafka.bootstrap.servers", place.brokers)
    writer.option("topic", place.out).save()


if __name__ == "__main__":
    main()
