"""A driver's lag: in its events, and among Spark's metrics for Prometheus."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from penstock.infra.manifests.prometheus import RENAMED, RENAMED_BY_PART, RENAMED_BY_QUERY
from penstock.jobs.driver.lag import LAG_RECORDS, STARTED_S, Gauges
from penstock.jobs.storage.checkpoint import BatchRecord, Checkpoint
from penstock.scripts.layout import ROOT
from tests.jobs.spark.running import CHECKPOINTS, Surroundings

# Metrics served by the driver while a query runs.
_DRIVER = """
import json, pathlib, sys, urllib.request
from penstock.jobs.driver import session
from penstock.jobs.driver.lag import Gauges

here = {
    "spark.ui.port": "0",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # The checkpoint is a folder of this machine.
    "spark.sql.streaming.checkpointFileManagerClass":
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
}
spark = session.build("metrics", "local[1]", here)
gauges = Gauges(spark)
gauges.behind(17)
gauges.show(json.loads(sys.argv[1]))
pathlib.Path("input").mkdir()
pathlib.Path("input/one.txt").write_text("one")
writer = spark.readStream.text("input").writeStream.queryName("user-credit").format("noop")
query = writer.option("checkpointLocation", "checkpoint").start()
query.processAllAvailable()
def read(path): return urllib.request.urlopen(spark.sparkContext.uiWebUrl + path, timeout=60).read().decode()
told = {"driver": read("/metrics/prometheus/"), "executors": read("/metrics/executors/prometheus/")}
query.stop()
spark.stop()
print(json.dumps(told))
"""


def _gauges(session: SparkSession) -> dict[str, Any]:
    registry: Any = session._jsparkSession.sparkContext().dagScheduler().metricsSource().metricRegistry()
    shown = registry.getGauges()
    return {name: shown.get(name).getValue() for name in (LAG_RECORDS, STARTED_S)}


def test_a_driver_reports_its_lag_with_each_commit_and_nothing_when_it_is_idle(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1})
    job.feed("a", {"key": "one", "at": "2025-04-05T10:00:00Z", "name": "one"})
    with job.running() as running:
        committed = running.wait("committed")
        assert committed["ends"] == {job.topics["a"]: {"0": 1}}
        assert committed["lag"] == {job.topics["a"]: 0}
        assert committed["lagRecords"] == 0
        assert running.wait("idle") == {"lagRecords": 0}
        assert _gauges(surroundings.session)[LAG_RECORDS] == 0


def test_the_record_of_a_micro_batch_has_how_far_each_partition_is_read(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1})
    job.edit(lambda spec: spec["sources"]["a"]["kafka"].update(maxOffsetsPerTrigger=2))
    job.feed("a", *({"key": f"{n}", "at": "2025-04-05T10:00:00Z", "name": f"{n}"} for n in range(5)))
    with job.running() as running:
        running.until_read({"a": [5]})
    checkpoint = Checkpoint(f"s3a://{CHECKPOINTS}/{job.name}/checkpoints/1", s3=surroundings.s3)
    texts = [checkpoint.get(f"batches/{number}.json") for number in range(3)]
    records = [BatchRecord.model_validate_json(text) for text in texts if text is not None]
    assert [record.positions for record in records] == [{job.topics["a"]: {0: (end, 5)}} for end in (2, 4, 5)]


def test_gauges_of_ours_stand_among_sparks_own_and_are_replaced_when_a_job_begins_anew(session: SparkSession) -> None:
    Gauges(session).behind(17)
    assert _gauges(session)[LAG_RECORDS] == 17
    assert _gauges(session)[STARTED_S] > 1_700_000_000
    Gauges(session)
    assert _gauges(session)[LAG_RECORDS] == 0


def test_prometheus_reads_the_gauges_of_the_driver_and_of_its_query_under_names_that_it_knows(tmp_path: Path) -> None:
    """In a separate Spark process: that of other tests has no UI."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    parts = ("watermarkMs", "watermarkMs.a.t-0", "rows.a.t-0", "lateRows.a", "toleratedRows.a", "keyedRows.k", "hottestKeyRows.k")
    command = [sys.executable, "-c", _DRIVER, json.dumps({f"penstock.{part}": 5 for part in parts})]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=True)
    pages = json.loads(ran.stdout.splitlines()[-1])
    names = {line.partition("{")[0].partition(" ")[0] for line in pages["driver"].splitlines() if line}
    for regex in RENAMED | RENAMED_BY_PART | RENAMED_BY_QUERY:
        assert [name for name in names if re.fullmatch(regex, name)], regex
    assert re.search(r'^metrics_penstock_driver_DAGScheduler_penstock_lagRecords_Value\{type="gauges"\} 17$', pages["driver"], re.MULTILINE)
    assert re.search(r"^metrics_executor_failedTasks_total\{.*\} 0$", pages["executors"], re.MULTILINE)
