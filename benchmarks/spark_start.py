"""CPU time of a local Spark driver's JVM for a small query, with and without the archive of Spark's classes:
``python -m benchmarks.spark_start [--rounds N]``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from penstock.scripts import layout
from penstock.scripts.local import class_data
from penstock.scripts.local.spark_cluster import fast_start
from penstock.scripts.process.process_tree import ProcessTree
from penstock.scripts.progress import Steps

# Two micro-batches with state, then it says so and waits to be ended.
_QUERY = """
import os, sys
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "2").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.extraClassPath", sys.argv[1]).config("spark.driver.extraJavaOptions", sys.argv[2])
session = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
rows = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
counts = rows.groupBy((rows.value % 5).alias("key")).count()
query = counts.writeStream.outputMode("update").format("memory").queryName("counts").start()
while len(query.recentProgress) < 2:
    query.awaitTermination(0.1)
print("done", flush=True)
sys.stdin.read()
"""


def main() -> None:
    """Prints the minimum, the median and the maximum of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    class_data.make(Steps())
    options = {"without the archive": fast_start().removesuffix(class_data.options()), "with the archive": fast_start()}
    cpu_s: dict[str, list[float]] = {name: [] for name in options}
    wall_s: dict[str, list[float]] = {name: [] for name in options}
    # One round more than asked for: the first reads the files.
    for number in range(rounds + 1):
        for name, java in options.items():
            cpu, wall = _run(java)
            if number:
                cpu_s[name].append(cpu)
                wall_s[name].append(wall)
    print(f"{'driver':<22} {'CPU, s: min':>12} {'median':>8} {'max':>8} {'wall, s: median':>16}")
    for name, some in cpu_s.items():
        shown = f"{min(some):>12.1f} {statistics.median(some):>8.1f} {max(some):>8.1f}"
        print(f"{name:<22} {shown} {statistics.median(wall_s[name]):>16.1f}")


def _run(java: str) -> tuple[float, float]:
    jars = os.pathsep.join(str(jar) for jar in layout.spark_jars())
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", _QUERY, jars, java]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, cwd=Path(folder), **pipes) as process:  # type: ignore[call-overload]
            assert process.stdout is not None
            process.stdout.readline()
            measured = ProcessTree(process.pid).cpu_s(), time.monotonic() - began
            process.communicate()
    return measured


if __name__ == "__main__":
    main()
