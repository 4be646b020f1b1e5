"""What the S3 clients of a checkpoint take: ``python -m benchmarks.checkpoint_clients [--stores N] [--rounds N]``.

A stateful query with N stores on an emulated S3, each time in a driver of its own: with Hadoop's file system for Spark's checkpoint files,
which has a client for each log and store, and with Penstock's, which has one. Measured from the query's start until its second micro-batch
has ended, and then what is left: the JVM's heap after a collection, its threads and its open sockets.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import boto3

from benchmarks.checkpoint_requests import BUCKET, conf
from penstock.jobs.driver import session as spark_session
from penstock.scripts import layout
from penstock.scripts.emulation.emulated_aws import EmulatedAws

_IMPLEMENTATION = "spark.hadoop.fs.AbstractFileSystem.s3a.impl"
_WAYS = {"Hadoop": "org.apache.hadoop.fs.s3a.S3A", "Penstock": spark_session.FIXED[_IMPLEMENTATION]}
_COLUMNS = {"cpu_s": "CPU, s", "heap_mib": "heap, MiB", "threads": "threads", "sockets": "sockets"}
_QUERY = """
import json, os, sys
from contextlib import suppress
from pathlib import Path
from penstock.jobs.driver import session as spark_session
from penstock.scripts.process.process_tree import ProcessTree

given = json.loads(sys.argv[1])
session = spark_session.build("benchmark", "local[2]", given["conf"])
session.sparkContext.setLogLevel("ERROR")
pid = int(session._jvm.java.lang.ProcessHandle.current().pid())
rows = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 10_000).option("numPartitions", 1).load()
with ProcessTree(os.getpid()) as tree:
    before = tree.cpu_s()
    counts = rows.groupBy(rows.value % 1_000).count().writeStream.outputMode("update").format("noop")
    query = counts.option("checkpointLocation", given["checkpoint"]).start()
    while len(query.recentProgress) < 2:
        query.awaitTermination(0.1)
    cpu_s = tree.cpu_s() - before
query.stop()
session._jvm.System.gc()
runtime = session._jvm.Runtime.getRuntime()
sockets = 0
for file in Path(f"/proc/{pid}/fd").iterdir():
    # Closed since.
    with suppress(FileNotFoundError):
        sockets += os.readlink(file).startswith("socket:")
left = {"heap_mib": (runtime.totalMemory() - runtime.freeMemory()) / 2**20, "threads": len(os.listdir(f"/proc/{pid}/task"))}
print(json.dumps({"cpu_s": cpu_s, "sockets": sockets, **left}), flush=True)
os._exit(0)
"""


def main() -> None:
    """Prints the medians of both ways."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stores", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    measured: dict[str, list[dict[str, float]]] = {way: [] for way in _WAYS}
    with tempfile.TemporaryDirectory() as folder, EmulatedAws(log=Path(folder) / "aws.log") as aws:
        os.environ.update(aws.environment())
        boto3.client("s3").create_bucket(Bucket=BUCKET)
        for number in range(options.rounds):
            for way, implementation in _WAYS.items():
                own = {"spark.driver.memory": "2g", _IMPLEMENTATION: implementation}
                given = {**conf(Path(folder), aws.endpoint, options.stores), **own}
                measured[way].append(_run({"conf": given, "checkpoint": f"s3a://{BUCKET}/{way}-{number}"}))
    print(f"{'file system':<12}", *(f"{title:>10}" for title in _COLUMNS.values()))
    for way, rounds in measured.items():
        medians = (statistics.median(one[name] for one in rounds) for name in _COLUMNS)
        print(f"{way:<12}", *(f"{median:>10.1f}" for median in medians))


def _run(given: dict[str, object]) -> dict[str, float]:
    environment = {**os.environ, "PYTHONPATH": str(layout.ROOT), "PYTHONSAFEPATH": "1"}
    command = [sys.executable, "-c", _QUERY, json.dumps(given)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


if __name__ == "__main__":
    main()
