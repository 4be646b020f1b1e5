"""Penstock's interval join compared with Spark's own, on hot keys: ``python -m benchmarks.interval_join [--rows N] [--keys N]``.

Each joins the same files, in one Spark session, three times in turn, and must return the same number of pairs. In state format 3, Spark
compares a row with every row of the other side under its key; Penstock's join, with ``hot_keys``, adds a slice of event time to the key.
In format 4, which is Penstock's, Spark reads only those rows whose times can match.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.jobs.blocks.joins import Side, interval_join
from penstock.jobs.driver import session as spark_session
from penstock.jobs.spec import State
from penstock.jobs.stream.streams import TIME, Stream
from penstock.scripts import layout

BOUND_S = 60
ROUNDS = 3

Join = Callable[[DataFrame, DataFrame], DataFrame]


def main() -> None:
    """Prints a table of seconds: minimum, median and maximum of the rounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000, help="of each side (default: 20000)")
    parser.add_argument("--keys", type=int, default=3, help="how many keys share them (default: 3)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        session = _session(Path(folder))
        for side in "lr":
            _write(session, Path(folder) / side, arguments.rows, arguments.keys, seed=ord(side))
        took: dict[str, list[float]] = {name: [] for name in _JOINS}
        pairs: dict[str, int] = {}
        for turn in range(ROUNDS + 1):
            for place, (name, (join, state_format)) in enumerate(_JOINS.items()):
                session.conf.set("spark.sql.streaming.join.stateFormatVersion", str(state_format))
                seconds, pairs[name] = _run(session, Path(folder), join, f"{turn}-{place}")
                # The first round is a warm-up.
                took[name] += [seconds] if turn else []
        assert len(set(pairs.values())) == 1, f"the joins differ: {pairs}"
        print(f"{arguments.rows:,} rows a side, {arguments.keys} keys, {BOUND_S} s to either side: {max(pairs.values()):,} pairs")
        for name, seconds_ in took.items():
            print(f"{name:<24} {min(seconds_):6.1f} {statistics.median(seconds_):6.1f} {max(seconds_):6.1f} s")
        session.stop()


def _session(folder: Path) -> SparkSession:
    conf = {
        **spark_session.state_conf(State()),
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in layout.spark_jars()),
        "spark.sql.shuffle.partitions": "2",
        "spark.local.dir": str(folder / "local"),
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
    }
    session = spark_session.build("benchmark", "local[2]", conf)
    session.sparkContext.setLogLevel("ERROR")
    return session


def _write(session: SparkSession, folder: Path, rows: int, keys: int, seed: int) -> None:
    """Rows spread evenly over a day."""
    at = F.timestamp_seconds(F.lit(1_700_000_000) + F.floor(F.rand(seed) * 86_400))
    table = session.range(rows).select((F.col("id") % keys).cast("string").alias("key"), at.alias("at"))
    table.coalesce(1).write.parquet(str(folder))


def _read(session: SparkSession, folder: Path) -> DataFrame:
    return session.readStream.schema("key string, at timestamp").parquet(str(folder))


def _stream(rows: DataFrame) -> Stream:
    return Stream(rows.withColumn(TIME, F.col("at")).withWatermark(TIME, "1 second"), timed=True)


def _penstock(hot_keys: bool, left: DataFrame, right: DataFrame) -> DataFrame:
    one, other = Side("l", _stream(left), "key"), Side("r", _stream(right), "key")
    return interval_join(one, other, lower=f"-{BOUND_S}s", upper=f"{BOUND_S}s", hot_keys=hot_keys).frame


def _spark(left: DataFrame, right: DataFrame) -> DataFrame:
    one = left.withWatermark("at", "1 second").alias("l")
    other = right.withWatermark("at", "1 second").alias("r")
    close = F.expr(f"r.at >= l.at - interval {BOUND_S} seconds and r.at <= l.at + interval {BOUND_S} seconds")
    return one.join(other, (F.col("l.key") == F.col("r.key")) & close).select("l.key")


# What joins, and in which format its state is.
_JOINS: dict[str, tuple[Join, int]] = {
    "Penstock's": (partial(_penstock, False), 4),
    "Penstock's with hot_keys": (partial(_penstock, True), 4),
    "with hot_keys, format 3": (partial(_penstock, True), 3),
    "Spark's, format 4": (_spark, 4),
    "Spark's, format 3": (_spark, 3),
}


def _run(session: SparkSession, folder: Path, join: Join, name: str) -> tuple[float, int]:
    result: list[int] = []
    joined = join(_read(session, folder / "l"), _read(session, folder / "r"))
    began_s = time.monotonic()
    query = (
        joined.writeStream.foreachBatch(lambda batch, _: result.append(batch.count()))
        .option("checkpointLocation", str(folder / name))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return time.monotonic() - began_s, sum(result)


if __name__ == "__main__":
    main()
