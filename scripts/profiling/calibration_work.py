"""The work of a calibration: ``python -m penstock.scripts.profiling.calibration_work``, which prints a line for each round of it.

A round is the same on every machine: records are made, parsed as JSON by Spark, counted by key, and one in ten is parsed by a Python
worker, on all cores. It is a mix of what jobs do, and not one of them: of two machines only the ratio counts. A change of it is another
`CALIBRATION_VERSION`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import count

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from penstock.scripts.profiling.machine import cores

RECORDS = 100_000
_TO_PYTHON = 10
_KEYS = 20_000
_PARTITIONS = 16
_SCHEMA = "user STRING, page STRING, at BIGINT, amount DOUBLE, tags ARRAY<STRING>"
_RECORD = '{"user": "user-%d", "page": "/pages/%d/details", "at": %d, "amount": %d.25, "tags": ["a-%d", "b", "c"]}'


def main() -> None:
    """Rounds until standard input ends."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{cores()}]").config("spark.ui.enabled", "false").config("spark.driver.memory", "1g")
    builder = builder.config("spark.sql.shuffle.partitions", str(_PARTITIONS)).config("spark.sql.adaptive.enabled", "false")
    session = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
    for _ in count():
        began_s = time.monotonic()
        _round(session)
        print(json.dumps({"records": RECORDS, "seconds": time.monotonic() - began_s}), flush=True)
        if sys.stdin.readline() == "":
            break
    session.stop()


def _round(session: SparkSession) -> None:
    numbers = session.range(0, RECORDS, 1, _PARTITIONS)
    key, page = F.col("id") % _KEYS, F.col("id") % 97
    lines = numbers.select("id", F.format_string(_RECORD, key, page, F.col("id") + 1_700_000_000_000, page, page).alias("line"))
    rows = lines.select("id", "line", F.from_json("line", _SCHEMA).alias("row"))
    by_user = rows.groupBy("row.user").agg(F.count("*").alias("n"), F.sum("row.amount").alias("amount"), F.max("row.at").alias("at"))
    by_user.write.format("noop").mode("overwrite").save()
    lines.where(F.col("id") % _TO_PYTHON == 0).select("line").mapInArrow(_parsed, "user string, n long").write.format("noop").mode(
        "overwrite"
    ).save()


def _parsed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        users = [json.loads(line) for line in batch.column(0).to_pylist()]
        rows = [{"user": row["user"], "n": len(row["tags"])} for row in users]
        yield pa.RecordBatch.from_pylist(rows, schema=pa.schema([("user", pa.string()), ("n", pa.int64())]))


if __name__ == "__main__":
    main()
