"""The planned read of files beside Spark's own: the same number of tasks for the same files and settings."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.jobs.stream.event_time.executed_plan import read_plan
from penstock.sizing.file_splits import FilesInput, files_read
from penstock.sizing.spark_settings import read_settings
from penstock.sizing.units import MIB

_FILES = "spark.sql.files"


@pytest.mark.parametrize(
    ("files", "size_bytes", "conf"),
    [
        (1, 100 * MIB, {}),
        (3, 3 * MIB, {}),
        (16, 2048 * MIB, {}),
        (7, 7 * 300 * MIB, {}),
        (60, 60 * 3 * MIB, {f"{_FILES}.maxPartitionBytes": "32m", f"{_FILES}.openCostInBytes": "1m"}),
        (5, 500 * MIB, {f"{_FILES}.minPartitionNum": "40"}),
        (9, 9 * 200 * MIB, {f"{_FILES}.maxPartitionNum": "4"}),
        (2, 50 * MIB, {"spark.sql.leafNodeDefaultParallelism": "6"}),
    ],
)
def test_spark_makes_as_many_partitions(session: SparkSession, tmp_path: Path, files: int, size_bytes: int, conf: dict[str, str]) -> None:
    for number in range(files):
        with (tmp_path / f"{number}.txt").open("wb") as file:
            # Sparse: nothing is read.
            file.truncate(size_bytes // files)
    cores = session.sparkContext.defaultParallelism
    planned = files_read(FilesInput(files=files, size_bytes=size_bytes), read_settings(conf)[0], cores, cores)
    own = session.newSession()
    for key, value in conf.items():
        own.conf.set(key, value)
    (scan,) = read_plan(own.read.text(str(tmp_path))._jdf.queryExecution().executedPlan()).scans
    assert planned.tasks == scan.partitions
