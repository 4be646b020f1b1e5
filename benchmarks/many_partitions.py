"""A micro-batch that reads many partitions: ``python -m benchmarks.many_partitions [--partitions N] [--micro-batches N] [--rounds N]``.

A query of plain Structured Streaming that does nothing with ten records of each partition, by how many of Kafka's consumers an executor
keeps (``spark.kafka.consumer.cache.capacity``). Each capacity in turn, in a process of its own, because a JVM keeps them for all its
sessions; the first half of the micro-batches is not measured.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks.batch_session import jvm
from penstock.jobs.driver.session import FIXED
from penstock.jobs.local.recording import Record
from penstock.scripts import layout
from penstock.scripts.local import kafka_topics
from penstock.scripts.local.kafka_broker import KafkaBroker
from penstock.scripts.process.process_tree import ProcessTree
from penstock.scripts.progress import Steps

_SETTING = "spark.kafka.consumer.cache.capacity"
# Spark's default, and Penstock's.
_CAPACITIES = (64, int(FIXED[_SETTING]))
_TOPIC, _RECORDS, _LOOK_S = "many", 10, 0.02


def main() -> None:
    """Prints the CPU time and the time of a micro-batch as rows of Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--micro-batches", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--brokers", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(_measured(options)))
        return
    steps, measured = Steps(), defaultdict[int, list[tuple[float, float]]](list)
    with tempfile.TemporaryDirectory(prefix="penstock-many-partitions-") as folder, _broker(folder) as kafka:
        values = [Record(b"x" * 80, partition=number % options.partitions) for number in range(options.partitions * _RECORDS)]
        kafka_topics.create(kafka.address, {_TOPIC: options.partitions})
        kafka_topics.feed(kafka.address, _TOPIC, options.partitions, values * options.micro_batches, lambda _: None)
        for _ in range(options.rounds):
            for capacity in _CAPACITIES:
                with steps.at("query", f"{capacity} consumers kept") as step:
                    measured[capacity].append(_in_a_process(capacity, kafka.address, options))
                    step.said = f"{capacity} consumers kept: {measured[capacity][-1][0]:,.0f} ms of CPU a micro-batch"
    print(f"| consumers kept | CPU of a micro-batch of {options.partitions} partitions, ms | time, ms |\n|---|---|---|")
    for capacity, costs in measured.items():
        print(f"| {capacity} |", " | ".join(_range(part) for part in zip(*costs, strict=True)), "|")


def _broker(folder: str) -> KafkaBroker:
    return KafkaBroker(folder=Path(folder, "kafka"), log=Path(folder, "kafka.log"))


def _range(values: tuple[float, ...]) -> str:
    return f"{statistics.median(values):,.0f} ({min(values):,.0f} to {max(values):,.0f})"


def _in_a_process(capacity: int, brokers: str, options: argparse.Namespace) -> tuple[float, float]:
    sizes = ["--partitions", str(options.partitions), "--micro-batches", str(options.micro_batches)]
    command = [sys.executable, "-m", "benchmarks.many_partitions", "--measure", str(capacity), "--brokers", brokers, *sizes]
    lines = subprocess.run(command, check=True, cwd=layout.ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    cpu_ms, ms = json.loads(lines.splitlines()[-1])
    return cpu_ms, ms


def _measured(options: argparse.Namespace) -> tuple[float, float]:
    """CPU time of the JVM and time, in milliseconds, of a micro-batch of the second half."""
    half = options.micro_batches // 2
    with tempfile.TemporaryDirectory(prefix="penstock-many-partitions-") as folder, ProcessTree(jvm(session := _session(options))) as tree:
        query = _records(session, options).writeStream.format("noop").option("checkpointLocation", folder).start()

        def until(micro_batch: int) -> tuple[float, float]:
            while not (last := query.lastProgress) or last.batchId < micro_batch:
                if not query.isActive:
                    raise SystemExit(str(query.exception()))
                time.sleep(_LOOK_S)
            return tree.cpu_s(), time.monotonic()

        begin, end = until(half - 1), until(options.micro_batches - 1)
        query.stop()
        session.stop()
    cpu_ms, ms = ((after - before) * 1e3 / (options.micro_batches - half) for before, after in zip(begin, end, strict=True))
    return cpu_ms, ms


def _session(options: argparse.Namespace) -> SparkSession:
    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_HOSTNAME="localhost")
    jars = os.pathsep.join(str(jar) for jar in layout.spark_jars())
    builder = SparkSession.builder.master("local[2]").config("spark.driver.extraClassPath", jars).config(_SETTING, str(options.measure))
    return builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false").getOrCreate()


def _records(session: SparkSession, options: argparse.Namespace) -> DataFrame:
    limit = options.partitions * _RECORDS
    reader = session.readStream.format("kafka").option("kafka.bootstrap.servers", options.brokers).option("subscribe", _TOPIC)
    reader = reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", str(limit))
    return reader.option("kafka.fetch.max.wait.ms", "10").load()


if __name__ == "__main__":
    main()
