"""CPU time of the joins with versions of a table: ``python -m benchmarks.versioned_joins [--rows N] [--table N] [--batches N]
[--rounds N]``.

One local Spark session reads the same files with each of them, in micro-batches, in turn, in several rounds; the table comes with the first
micro-batch, and a hundredth of its rows change with each of the others. CPU time is that of the process with its JVM and the Python
workers, without the cost of a query that only reads and repartitions the rows.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.jobs.blocks.joins import Side, broadcast_join, temporal_join
from penstock.jobs.driver import session as spark_session
from penstock.jobs.spec import State
from penstock.jobs.stream.streams import TIME, Stream
from penstock.scripts import layout
from penstock.scripts.process.process_tree import ProcessTree

_START_S = 1_700_000_000
_PER_ROWS = 10_000
# Between two micro-batches, in event time.
_STEP_S = 60


def main() -> None:
    """Prints a table of seconds: minimum, median and maximum of the rounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000, help="left rows (default: 20000)")
    parser.add_argument("--table", type=int, default=1_000, help="rows of the table (default: 1000)")
    parser.add_argument("--batches", type=int, default=4, help="micro-batches that they come in (default: 4)")
    parser.add_argument("--rounds", type=int, default=3, help="after a warm-up (default: 3)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        session = _session(Path(folder))
        _write(session, Path(folder), arguments.rows, arguments.table, arguments.batches)
        joins: dict[str, Callable[[Stream, Stream], DataFrame]] = {
            "neither": _neither,
            "broadcast_join": lambda left, right: broadcast_join(Side("l", left, "k"), Side("r", right, "k"), how="left").frame,
            "temporal_join": lambda left, right: temporal_join(Side("l", left, "k"), Side("r", right, "k"), how="left").frame,
        }
        took: dict[str, list[float]] = {name: [] for name in joins}
        for turn in range(arguments.rounds + 1):
            for name, join in joins.items():
                taken_s, rows = _run(session, Path(folder), join, f"{name}-{turn}")
                # The last row of all never becomes due.
                assert rows == arguments.rows + (name == "neither"), f"{name}: {rows} rows"
                # The first round is a warm-up.
                took[name] += [taken_s] if turn else []
        print(f"{arguments.rows:,} left rows in {arguments.batches} micro-batches, a table of {arguments.table:,} rows")
        print(f"{'CPU s per 10,000 left rows':<28} {'min':>7} {'median':>7} {'max':>7}")
        for name, taken in _per_rows(took, arguments.rows).items():
            print(f"{name:<28} {min(taken):>7.2f} {statistics.median(taken):>7.2f} {max(taken):>7.2f}")
        session.stop()


def _per_rows(took: Mapping[str, list[float]], rows: int) -> dict[str, list[float]]:
    """What the joins take beside reading, and reading itself."""
    reading = statistics.median(took["neither"])
    return {name: [(one - (reading if name != "neither" else 0)) / rows * _PER_ROWS for one in all_] for name, all_ in took.items()}


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


def _write(session: SparkSession, folder: Path, rows: int, table: int, batches: int) -> None:
    """A file of each side for each micro-batch, and a last one that lets all others become due."""
    for number in range(batches + 1):
        start_s = _START_S + number * _STEP_S
        lefts = rows // batches if number < batches else 0
        rights = table if number == 0 else table // 100
        key = F.concat(F.lit("key-"), F.floor(F.rand(number) * table).cast("string"))
        spread = F.timestamp_seconds(F.lit(start_s) + F.rand(number + 1) * _STEP_S)
        left = session.range(lefts).select(key.alias("k"), F.col("id").cast("string").alias("text"), spread.alias("at"))
        # The table is there before the first row, and each side has a row at the end that the watermark comes from.
        at = F.timestamp_seconds(F.lit(start_s - _STEP_S if number == 0 else start_s + _STEP_S // 2))
        named = F.concat(F.lit("key-"), F.col("id").cast("string"))
        right = session.range(rights).select(named.alias("k"), F.concat(F.lit("version "), F.lit(number)).alias("text"), at.alias("at"))
        last = session.range(1 if number == batches else 0).select(
            F.lit("last").alias("k"), F.lit("").alias("text"), F.timestamp_seconds(F.lit(start_s + 10 * _STEP_S)).alias("at")
        )
        for side, frame in (("l", left), ("r", right)):
            path = folder / side / f"{number:03d}"
            frame.unionByName(last).coalesce(1).write.parquet(str(path))
            for file in path.glob("*.parquet"):
                # The file source reads the oldest first.
                os.utime(file, (_START_S + number, _START_S + number))


def _stream(session: SparkSession, folder: Path) -> Stream:
    reader = session.readStream.schema("k string, text string, at timestamp").option("maxFilesPerTrigger", 1)
    frame = reader.parquet(str(folder / "*")).withColumn(TIME, F.date_trunc("MILLISECOND", "at"))
    return Stream(frame.withWatermark(TIME, "1 second"), timed=True)


def _neither(left: Stream, right: Stream) -> DataFrame:
    """Reads both sides, and repartitions them as the joins do."""
    return left.frame.unionByName(right.frame.where("false")).repartition("k")


def _run(session: SparkSession, folder: Path, join: Callable[[Stream, Stream], DataFrame], name: str) -> tuple[float, int]:
    counted: list[int] = []
    joined = join(*(_stream(session, folder / side) for side in "lr"))
    tree = ProcessTree(os.getpid())
    began_s = tree.cpu_s()

    def count(batch: DataFrame, _: int) -> None:
        # The hash needs every column.
        (row,) = batch.agg(F.count("*"), F.max(F.xxhash64(*batch.columns))).collect()
        counted.append(row[0])

    query = joined.writeStream.foreachBatch(count).option("checkpointLocation", str(folder / name)).trigger(availableNow=True).start()
    query.awaitTermination()
    return tree.cpu_s() - began_s, sum(counted)


if __name__ == "__main__":
    main()
