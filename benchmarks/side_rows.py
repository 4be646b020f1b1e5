"""CPU time of a source's rows, by the way in which rows leave that are malformed or late:
``python -m benchmarks.side_rows [--rows N] [--rounds N] [--fields N] [--timestamps N] [--java OPTIONS] [--way WAY ...]``.

The ways parse the same JSON, judge each row against the watermark, count the rows and the greatest event time of each of 16 partitions,
and keep the rows that leave, one in ten thousand. Two ways take the values for lines of text, and keep one in a thousand of them by a
filter on its upper case; Penstock also checks that they are UTF-8, and counts those that are filtered. The last two write records of many
fields as JSON: the more fields, the larger the methods of the code that Spark generates for them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from penstock.jobs.sources import records
from penstock.jobs.sources.fields import field, named_fields
from penstock.jobs.sources.records import SPLIT, Input
from penstock.jobs.sources.values import Values, read
from penstock.jobs.spec.sources import EventTime
from penstock.jobs.stream import leaving
from penstock.jobs.stream.event_time import judging
from penstock.jobs.stream.event_time.engine import evaluated
from penstock.jobs.stream.side_outputs import REASON
from penstock.jobs.stream.streams import TIME
from penstock.scripts import layout
from penstock.scripts.process.process_tree import ProcessTree

_SCHEMA = "ad_id STRING NOT NULL, event_type STRING, event_time BIGINT"
_PARTITIONS, _BAD_EVERY = 16, 10_000
_BEGIN_MS = 1_743_854_400_000
_TIME = EventTime(field="event_time", format="epoch-millis")
_WANTED = "line LIKE '%AD-0007%'"
_CONTEXT = {
    "penstock.checkpoint": "s3a://none/none",
    "penstock.fencingToken": "1",
    "penstock.sideOutputs": "quarantined,late",
    "penstock.watermark": f"{_BEGIN_MS} {_BEGIN_MS}",
    "penstock.batchTime": str(_BEGIN_MS),
    "streaming.sql.batchId": "0",
    "spark.jobGroup.id": "benchmark",
}


def main() -> None:
    """Prints the microseconds of each way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fields", type=int, default=19, help="further fields of the records of the last two ways (default: %(default)s)")
    parser.add_argument("--timestamps", type=int, default=0, help="how many of these are TIMESTAMP, the others are STRING (default: 0)")
    parser.add_argument("--java", default="", help="options of Spark's JVM")
    parser.add_argument("--way", nargs="+", choices=(*_WAYS, *_WIDE), default=[*_WAYS, *_WIDE])
    options = parser.parse_args()
    with TemporaryDirectory() as folder, ProcessTree(os.getpid()) as tree:
        session = _session(Path(folder), options.java)
        given = _records(session, Path(folder) / "records", options.rows)
        further = (options.fields, options.timestamps)
        wide = _records(session, Path(folder) / "wide", options.rows, *further) if _WIDE.keys() & options.way else given
        ways = {name: partial(way, given) for name, way in _WAYS.items()}
        ways |= {name: partial(way, wide, _further(*further)) for name, way in _WIDE.items()}
        measured: dict[str, list[float]] = {name: [] for name in options.way}
        for number in range(options.rounds + 1):
            for name in options.way:
                leaving.forget(session)
                before = tree.cpu_s()
                ways[name]()
                # The first round compiles.
                if number:
                    measured[name].append((tree.cpu_s() - before) * 1e6 / options.rows)
        session.stop()
    print(f"{'way':<22} {'CPU, µs a row (median, minimum to maximum)':>44}")
    for name, rounds in measured.items():
        print(f"{name:<22} {statistics.median(rounds):>20.1f} ({min(rounds):.1f} to {max(rounds):.1f})")


def _session(folder: Path, java: str) -> SparkSession:
    os.environ.update(PYSPARK_PYTHON=sys.executable, PYTHONPATH=str(layout.ROOT), PYTHONSAFEPATH="1")
    jars = os.pathsep.join(map(str, layout.spark_jars()))
    builder = SparkSession.builder.master("local[2]").config("spark.driver.extraClassPath", jars).config("spark.driver.memory", "3g")
    conf = {"spark.sql.session.timeZone": "UTC", "spark.ui.enabled": "false", "spark.local.dir": str(folder)}
    builder = builder.config("spark.driver.extraJavaOptions", java)
    session = builder.config(map=cast(Any, conf)).config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    for name, value in _CONTEXT.items():
        session.sparkContext.setLocalProperty(name, value)
    return session


def _records(session: SparkSession, folder: Path, rows: int, further: int = 0, timestamps: int = 0) -> DataFrame:
    """Records as of Kafka, in Parquet: 200 bytes each, and 23 for each of the further fields, 37 for a TIMESTAMP."""
    texts = ("2025-04-05T12:30:00.%03dZ" if number < timestamps else "value-%04d" for number in range(further))
    more = "".join(f',"field_{number:02}":"{text}"' for number, text in enumerate(texts))
    text = F.format_string(
        '{"ad_id":"ad-%04d","ad_type":"banner","event_type":"view","event_time":%d,"user_id":"user-%06d","page_id":"page-%04d",'
        '"ip":"198.51.100.7","session":"0123456789abcdef0123456789abcdef"'
        f"{more}}}",
        F.col("id") % 1000,
        F.lit(_BEGIN_MS) + F.col("id"),
        F.col("id") % 100_000,
        F.col("id") % 100,
        *(F.col("id") % (number + 7) for number in range(further)),
    )
    value = F.when(F.col("id") % _BAD_EVERY == 0, F.lit('{"broken')).otherwise(text)
    made = session.range(0, rows, 1, _PARTITIONS).select(
        F.lit(None).cast("binary").alias("key"),
        value.cast("binary").alias("value"),
        F.lit("events").alias("topic"),
        F.spark_partition_id().alias("partition"),
        F.col("id").alias("offset"),
        F.timestamp_millis(F.lit(_BEGIN_MS)).alias("timestamp"),
        F.spark_partition_id().alias(SPLIT),
    )
    made.write.parquet(str(folder))
    return session.read.parquet(str(folder))


def _schema(more: str = "") -> StructType:
    schema = StructType.fromDDL(_SCHEMA + more)
    assert isinstance(schema, StructType)
    return schema


def _plain(given: DataFrame) -> None:
    """What PySpark needs to parse the rows and to drop the malformed ones."""
    fields = F.from_json(F.col("value").cast("string"), _SCHEMA.replace(" NOT NULL", ""))
    frame = given.select(fields.alias("v")).select("v.*").where(F.col("ad_id").isNotNull())
    evaluated(frame.withColumn("time", F.timestamp_millis("event_time")))


def _functions(given: DataFrame, more: str = "") -> None:
    """Penstock's way."""
    source = Input(given.sparkSession, "events", cast(Any, SimpleNamespace(time=_TIME)), _schema(more))
    parsed = read(given, Values("json"), source.schema, "")
    evaluated(records.of_fields(source, parsed).frame)
    passed = leaving.Passed.of(given.sparkSession, "benchmark", 0)
    assert passed.by_tag()["quarantined"].rows * _BAD_EVERY == sum(rows for rows, _ in passed.splits["events"].values())


def _from_json(given: DataFrame) -> None:
    """The same, but for the values, which Spark's own function reads: it must for a schema with a DATE."""
    _functions(given, ", other DATE")


def _plain_text(given: DataFrame) -> None:
    """Lines in plain PySpark, none of which is checked or counted."""
    evaluated(given.select(F.upper(F.col("value").cast("string")).alias("line")).where(_WANTED))


def _text(given: DataFrame) -> None:
    """Lines in Penstock."""
    schema = StructType([StructField("line", StringType())])
    source = Input(given.sparkSession, "events", cast(Any, SimpleNamespace(time=None)), schema)
    lines = records.of_fields(source, read(given, Values("text"), schema, "")).select(line="upper(line)").filter(_WANTED)
    evaluated(lines.frame)


def _further(fields: int, timestamps: int) -> str:
    kinds = ("TIMESTAMP" if number < timestamps else "STRING" for number in range(fields))
    return "".join(f", field_{number:02} {kind}" for number, kind in enumerate(kinds))


def _plain_wide(given: DataFrame, more: str) -> None:
    """From JSON to JSON in plain PySpark."""
    fields = F.from_json(F.col("value").cast("string"), _SCHEMA.replace(" NOT NULL", "") + more)
    frame = given.select(fields.alias("v")).select("v.*").where(F.col("ad_id").isNotNull())
    evaluated(_as_json(frame.withColumn("time", F.timestamp_millis("event_time"))))


def _wide(given: DataFrame, more: str) -> None:
    """From JSON to JSON in Penstock."""
    source = Input(given.sparkSession, "events", cast(Any, SimpleNamespace(time=_TIME)), _schema(more))
    evaluated(_as_json(records.of_fields(source, read(given, Values("json"), source.schema, "")).frame))


def _as_json(frame: DataFrame) -> DataFrame:
    """As a sink to Kafka writes rows."""
    return frame.select(F.to_json(F.struct(*frame.columns), {"ignoreNullFields": "false"}))


def _judged(given: DataFrame) -> DataFrame:
    """The rows with their reason, judged against a watermark that a Python task reads."""
    frame = judging.timed(read(given, Values("json"), _schema(), ""), "events", _TIME, field, _schema())
    watermark = given.sparkSession.range(1, numPartitions=1).mapInArrow(_watermark, "current_ms bigint")
    late = F.coalesce(F.unix_millis(TIME) < F.col("current_ms"), F.lit(False))
    return frame.crossJoin(F.broadcast(watermark)).withColumn("_side", late | F.col(REASON).isNotNull())


def _watermark(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    assert context is not None
    for _ in batches:
        current_ms = int(str(context.getLocalProperty("penstock.watermark")).split()[0])
        yield pa.RecordBatch.from_pydict({"current_ms": [current_ms]})


def _observed(given: DataFrame) -> None:
    """A count and a maximum of each partition, and the rows that leave, as observed metrics."""
    side = F.collect_list(F.when(F.col("_side"), F.struct(REASON, "topic", "partition", "offset", "value"))).alias("side")
    evaluated(_judged(given).observe("side_rows", side, *_counts()).where(~F.col("_side")).select(*named_fields(_schema()), TIME))


def _counts() -> list[Column]:
    counts = []
    for number in range(_PARTITIONS):
        here = F.col(SPLIT) == number
        counts += [F.count(F.when(here, 1)).alias(f"n{number}"), F.max(F.when(here, F.unix_millis(TIME))).alias(f"t{number}")]
    return counts


def _by_python(given: DataFrame) -> None:
    """Counts as observed metrics, and all rows through a step in Python that takes out those that leave."""
    frame = (
        _judged(given)
        .observe("side_rows", *_counts())
        .select(*named_fields(_schema()), TIME, "_side", F.when(F.col("_side"), F.col("value")).alias("value"))
    )
    evaluated(frame.mapInArrow(_without, frame.schema).drop("_side", "value"))


def _without(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.filter(pc.invert(batch.column("_side")))


_WAYS: dict[str, Callable[[DataFrame], None]] = {
    "plain, nothing kept": _plain,
    "functions in Java": _functions,
    "values by from_json": _from_json,
    "observed metrics": _observed,
    "a step in Python": _by_python,
    "text, plain": _plain_text,
    "text": _text,
}
_WIDE: dict[str, Callable[[DataFrame, str], None]] = {"many fields, plain": _plain_wide, "many fields": _wide}

if __name__ == "__main__":
    main()
