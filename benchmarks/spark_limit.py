"""What Spark needs at least for the job ``ads``: ``python -m benchmarks.spark_limit [--records N] [--rounds N] [--warm-up N]``.

The steps of the job, each with those before it, as batch queries in one session whose code is compiled: nothing is planned for a
micro-batch, no checkpoint, watermark or state is kept, no campaign is joined and nothing is written. PyFlink SQL runs the whole job on
the same topics, in the same run.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from benchmarks.batch_session import batch_session, jvm
from benchmarks.streaming.contestants import flink
from benchmarks.streaming.contestants.place import Place
from benchmarks.streaming.rounds import Bench, Filled
from benchmarks.streaming.workloads import WORKLOADS
from penstock.jobs.sources.fields import named_fields
from penstock.jobs.sources.kafka import consumer_options
from penstock.jobs.sources.values import Values, read
from penstock.jobs.spec import KafkaSource
from penstock.scripts.process.process_tree import ProcessTree
from penstock.scripts.progress import Steps

_SCHEMA = StructType().add("ad_id", "string").add("event_type", "string").add("event_time", "long")

Step = Callable[[DataFrame], DataFrame]


def _values(records: DataFrame) -> DataFrame:
    """The records' values as bytes, by the consumers of Penstock's sources."""
    return records.select("value")


def _fields(records: DataFrame) -> DataFrame:
    """Three fields of their JSON, as Penstock reads them."""
    return read(records, Values("json"), _SCHEMA, "").select(*named_fields(_SCHEMA))


def _plain_fields(records: DataFrame) -> DataFrame:
    """The same as plain PySpark reads them."""
    return records.select(F.from_json(F.col("value").cast("string"), _SCHEMA).alias("v")).select("v.*")


def _counts(records: DataFrame) -> DataFrame:
    """Views of each ad in windows of ten seconds."""
    views = _fields(records).where("event_type = 'view'")
    return views.groupBy(F.window(F.timestamp_millis("event_time"), "10 seconds"), "ad_id").count()


_STEPS: dict[str, Step] = {
    "Spark reads the topic": _values,
    "and JSON, by from_json": _plain_fields,
    "and JSON, as Penstock does": _fields,
    "and counts by ad and window": _counts,
}


def main() -> None:
    """Prints the CPU time of each step, and PyFlink SQL's of the whole job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=6_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=3, help="rounds before them (default: %(default)s)")
    options = parser.parse_args()
    steps = Steps()
    flink.prepare(steps)
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="penstock-spark-limit-")))
        bench = held.enter_context(Bench(folder, folder / "logs", steps))
        filled = bench.fill(WORKLOADS["ads"], options.records)
        measured = _measured(bench, filled, options.rounds, options.warm_up, steps)
    print(f"{'CPU, µs a record':<32} {'median':>8} {'minimum':>8} {'maximum':>8}")
    for name, values in measured.items():
        print(f"{name:<32} {statistics.median(values):>8.2f} {min(values):>8.2f} {max(values):>8.2f}")


def _measured(bench: Bench, filled: Filled, rounds: int, warm_up: int, steps: Steps) -> dict[str, list[float]]:
    measured: dict[str, list[float]] = defaultdict(list)
    place = bench.place("penstock", filled.workload, "spark-limit", filled.records, filled.topics)
    with batch_session(place) as session, ProcessTree(jvm(session)) as tree:
        for number in range(warm_up + rounds):
            for name, step in _STEPS.items():
                with steps.at("step", name) as said:
                    before_s = tree.cpu_s()
                    step(_records(session, place)).write.format("noop").mode("overwrite").save()
                    us = (tree.cpu_s() - before_s) * 1e6 / filled.records
                    said.said = f"{name}: {us:.2f} µs"
                if number >= warm_up:
                    measured[name].append(us)
            if number >= warm_up:
                result = bench.run("flink", filled)
                if result.wrong or not result.warm_events_per_cpu_s:
                    raise SystemExit(f"PyFlink SQL: {result.wrong[0] if result.wrong else 'too few records, all came at once'}")
                measured["PyFlink SQL, the whole job"].append(1e6 / result.warm_events_per_cpu_s)
    return measured


def _records(session: SparkSession, place: Place) -> DataFrame:
    topic = place.topics["events"]
    options = consumer_options(KafkaSource(topic=topic, startingOffsets="earliest"))
    reader = session.read.format("kafka").options(**options).option("kafka.bootstrap.servers", place.brokers)
    return reader.option("subscribe", topic).load()


if __name__ == "__main__":
    main()
