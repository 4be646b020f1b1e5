"""Requests to S3 per micro-batch, by checkpoint file manager: ``python -m benchmarks.checkpoint_requests [--batches N]``.

One Spark session, the emulated S3 behind a proxy that counts, and a query that reads no S3 of its own: what is counted is the checkpoint.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
import threading
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import boto3
from pyspark.sql import DataFrame, SparkSession

from penstock.jobs.driver import session as spark_session
from penstock.jobs.spec import State
from penstock.scripts import layout
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from tests.jobs.spark.s3_proxy import Request, S3Proxy

MANAGERS = {
    "Spark": "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager",
    "Penstock": spark_session.FIXED["spark.sql.streaming.checkpointFileManagerClass"],
}
BUCKET, SHUFFLE_PARTITIONS = "checkpoints", 2
METHODS = ("PUT", "LIST", "HEAD", "GET", "DELETE", "POST")
# The first micro-batches also create folders and schemas.
WARM_UP = 3


def main() -> None:
    """Prints a table: requests per micro-batch, and how many of them write or list, which S3 charges alike."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=10, help="counted per query (default: 10)")
    parser.add_argument("--query", choices=("stateless", "stateful"), nargs="+", default=["stateless", "stateful"])
    parser.add_argument("--manager", choices=tuple(MANAGERS), nargs="+", default=list(MANAGERS))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, EmulatedAws(log=Path(folder) / "aws.log") as aws, S3Proxy(aws.endpoint) as proxy:
        os.environ.update(aws.environment())
        boto3.client("s3").create_bucket(Bucket=BUCKET)
        session = _session(Path(folder), proxy.endpoint)
        print(f"{'query':<10} {'manager':<11} {'format':<7} {'all':>6}", *(f"{one:>6}" for one in METHODS), "  by folder")
        for kind in arguments.query:
            for name in arguments.manager:
                for version in ("1", "2") if kind == "stateful" else ("2",):
                    session.conf.set("spark.sql.streaming.checkpointFileManagerClass", MANAGERS[name])
                    session.conf.set("spark.sql.streaming.stateStore.checkpointFormatVersion", version)
                    seen = _counted(session, proxy, kind, f"{kind}-{name[0]}-{version}", arguments.batches)
                    methods, folders = _shares(seen, arguments.batches)
                    shown = " ".join(f"{methods[one] / arguments.batches:>6.1f}" for one in METHODS)
                    total = len(seen) / arguments.batches
                    print(f"{kind:<10} {name:<11} {version:<7} {total:>6.1f} {shown}   {folders}", flush=True)
        session.stop()


def conf(folder: Path, endpoint: str, shuffle_partitions: int) -> dict[str, str]:
    """Settings of a local driver whose checkpoints are on an emulated S3."""
    return {
        **spark_session.state_conf(State()),
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in layout.spark_jars()),
        "spark.sql.shuffle.partitions": str(shuffle_partitions),
        "spark.local.dir": str(folder / "local"),
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.hadoop.fs.s3a.endpoint": endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
    }


def _session(folder: Path, endpoint: str) -> SparkSession:
    session = spark_session.build("benchmark", "local[2]", conf(folder, endpoint, SHUFFLE_PARTITIONS))
    session.sparkContext.setLogLevel("ERROR")
    return session


def _counted(session: SparkSession, proxy: S3Proxy, kind: str, name: str, batches: int) -> list[Request]:
    """The requests from the beginning of one micro-batch to the beginning of the one that is `batches` later."""
    rows = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).option("numPartitions", 1).load()
    seen: list[Request] = []
    ended = threading.Event()

    def write(frame: DataFrame, batch: int) -> None:
        frame.collect()
        if batch == WARM_UP:
            proxy.clear()
        elif batch == WARM_UP + batches:
            seen.extend(proxy.requests)
            ended.set()

    frame = rows.groupBy(rows.value % 5).count() if kind == "stateful" else rows
    writer = frame.writeStream.outputMode("update").foreachBatch(write).trigger(processingTime="0 seconds")
    query = writer.option("checkpointLocation", f"s3a://{BUCKET}/{name}").start()
    while not ended.wait(1):
        error = query.exception()
        if error is not None:
            raise error
    query.stop()
    return seen


def _shares(seen: list[Request], batches: int) -> tuple[Counter[str], str]:
    """Method -> requests, a LIST being a GET of a bucket; and requests per micro-batch by folder of the checkpoint, as text."""
    methods = Counter("LIST" if "list-type" in request.query else request.method for request in seen)
    places = (re.search(r"state(?:ful|less)-\w-\d/([a-z]+)", unquote(f"{request.path}?{request.query}")) for request in seen)
    folders = Counter(place[1] if place else "others" for place in places)
    return methods, ", ".join(f"{count / batches:.1f} {folder}" for folder, count in sorted(folders.items()))


if __name__ == "__main__":
    main()
