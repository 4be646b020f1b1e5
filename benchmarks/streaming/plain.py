"""The same jobs in plain PySpark: ``python -m benchmarks.streaming.plain CONFIGURATION.json --events FILE``.

Each as an engineer who knows Spark writes it: Kafka in, ``from_json`` of the fields that are needed, the DataFrame API, Kafka out. It takes
the configuration of Penstock's driver and reports the same events. What does not parse is dropped, or, where the spec has a topic for it,
written there by a query of its own, which reads the input again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import pandas as pd
import redis
import yaml
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import QueryIdleEvent, QueryProgressEvent, QueryStartedEvent, QueryTerminatedEvent
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from benchmarks.streaming.workload import Input
from benchmarks.streaming.workloads import WORKLOADS
from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.driver.listening import LightListener

# A competent setting of each: state that is large and incremental, checkpoints without renames on S3, no plan that changes midway.
CONF = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager",
    "spark.sql.streaming.noDataProgressEventInterval": "0",
    "spark.ui.showConsoleProgress": "false",
}
_ISO = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"
# Of a spec -> Spark's.
_DELAYS = {"10s": "10 seconds", "6h": "6 hours"}
_TRIGGERS = {"1ms": "0 seconds", "1s": "1 second"}
_ROWS_A_TRIP = 500
_CALLS = 10


class Plain:
    """A job's session, its input and its output.

    Args:
        configuration: of the driver.
        spec: the job's spec.
        session: Spark's.
    """

    def __init__(self, configuration: RuntimeConfiguration, spec: dict[str, Any], session: SparkSession) -> None:
        self.configuration, self.spec, self.session = configuration, spec, session
        self.workload = WORKLOADS[spec["metadata"]["name"].replace("-", "_")]
        self.queries: list[Any] = []

    def raw(self, name: str) -> DataFrame:
        """The records of a source."""
        kafka = self.spec["spec"]["sources"][name]["kafka"]
        options = {"subscribe": kafka["topic"], "startingOffsets": "earliest", "maxOffsetsPerTrigger": kafka["maxOffsetsPerTrigger"]}
        return (
            self.session.readStream.format("kafka").option("kafka.bootstrap.servers", self.configuration.brokers).options(**options).load()
        )

    def parsed(self, name: str) -> DataFrame:
        """The fields of the records that are JSON."""
        fields = F.from_json(F.col("value").cast("string"), self.workload.inputs[name].schema)
        first = self.workload.inputs[name].schema.split()[0]
        # A broken record has no field at all.
        return self.raw(name).select(fields.alias("v")).select("v.*").where(F.col(first).isNotNull())

    def timed(self, name: str) -> DataFrame:
        """The same with an event time and a watermark."""
        field = self.workload.inputs[name].time
        assert field is not None
        frame = self.parsed(name)
        is_millis = frame.schema[field].dataType.typeName() == "long"
        time = F.timestamp_millis(F.col(field)) if is_millis else F.col(field).cast("timestamp")
        delay = _DELAYS[self.spec["spec"]["sources"][name]["time"]["outOfOrderness"]]
        return frame.withColumn("time", time).withWatermark("time", delay)

    def table(self, name: str) -> DataFrame:
        """A compacted topic as it is now."""
        kafka = self.spec["spec"]["sources"][name]["kafka"]
        reader = self.session.read.format("kafka").option("kafka.bootstrap.servers", self.configuration.brokers)
        fields = F.from_json(F.col("value").cast("string"), self.workload.inputs[name].schema)
        return reader.option("subscribe", kafka["topic"]).load().select(fields.alias("v")).select("v.*")

    def write(self, frame: DataFrame, mode: str = "append") -> None:
        """Starts the query that writes the rows."""
        out = self.spec["spec"]["sinks"]["out"]
        if "files" in out:
            path = f"s3a://{self.configuration.output_bucket}/{out['files']['path']}"
            # Spark's file sink lists what belongs to the output in a log of its own.
            self._start("out", frame.writeStream.format("json").option("path", path), mode)
        elif "redis" in out:
            sink = out["redis"]
            write = partial(_to_redis, self.configuration.connections[sink["connection"]], sink["prefix"], sink["key"])
            self._start("out", frame.writeStream.foreachBatch(lambda rows, _: write(rows)), mode)
        else:
            value = F.to_json(F.struct(*frame.columns)).alias("value")
            self._start("out", self._to_kafka(frame.select(value), out["kafka"]["topic"]), mode)

    def keep_broken(self) -> None:
        """Starts a query for each stream that writes what does not parse to the topic of the spec, if there is one."""
        sinks = self.spec["spec"]["sinks"]
        errors = sinks.get("errors") or sinks.get("quarantine")
        if errors is None:
            return
        for name, given in self.workload.inputs.items():
            is_broken = _is_broken(given)
            if is_broken is not None:
                broken = self.raw(name).where(is_broken).select("value")
                self._start(f"broken-{name}", self._to_kafka(broken, errors["kafka"]["topic"]), "append")

    def _to_kafka(self, frame: DataFrame, topic: str) -> Any:
        return frame.writeStream.format("kafka").option("kafka.bootstrap.servers", self.configuration.brokers).option("topic", topic)

    def _start(self, name: str, writer: Any, mode: str) -> None:
        place = f"{self.configuration.job_folder}/{name}"
        query = writer.queryName(name).outputMode(mode).option("checkpointLocation", place)
        trigger = _TRIGGERS[self.spec["spec"]["trigger"]] if name == "out" else "0 seconds"
        self.queries.append(query.trigger(processingTime=trigger).start())


def _is_broken(given: Input) -> Column | None:
    """Whether a record of an input does not parse; None for a table, which is read once."""
    text = F.col("value").cast("string")
    if not given.schema:
        return ~F.is_valid_utf8(text)
    return F.from_json(text, given.schema)[given.schema.split()[0]].isNull() if given.time else None


def _iso(column: str) -> Column:
    return F.date_format(column, _ISO)


def _to_redis(url: str, prefix: str, key: list[str], rows: DataFrame) -> None:
    """Overwrites a hash for each row, from the tasks, many in a round trip."""

    def write(part: Iterator[Row]) -> None:
        with redis.from_url(url) as server:
            while some := list(islice(part, _ROWS_A_TRIP)):
                with server.pipeline(transaction=False) as trip:
                    for row in some:
                        trip.hset(prefix + ":".join(str(row[name]) for name in key), mapping=row.asDict())
                    trip.execute()

    rows.foreachPartition(write)


def ads(job: Plain) -> None:
    """A stream joined to a table that is read once."""
    job.write(_views_by_campaign(job))


def ads_redis(job: Plain) -> None:
    """The same, with each change of a window."""
    job.write(_views_by_campaign(job), "update")


def _views_by_campaign(job: Plain) -> DataFrame:
    views = job.timed("events").where("event_type = 'view'")
    joined = views.join(F.broadcast(job.table("campaigns").select("ad_id", "campaign_id")), "ad_id")
    counts = joined.groupBy("campaign_id", F.window("time", "10 seconds")).agg(F.count("*").alias("views"))
    return counts.select("campaign_id", F.unix_millis("window.start").alias("window_start_ms"), "views")


def error_logs(job: Plain) -> None:
    """No state."""
    lines = job.raw("logs").select(F.upper(F.col("value").cast("string")).alias("line"))
    job.write(lines.where("line like '%ERROR%'"))


def tumbling(job: Plain) -> None:
    """Windows of five minutes."""
    _windows(job, "region_code", F.window("time", "5 minutes"))


def sessions(job: Plain) -> None:
    """Sessions with a gap of thirty minutes."""
    _windows(job, "unique_session_token", F.session_window("time", "30 minutes"))


def _windows(job: Plain, key: str, window: Column) -> None:
    sums = [F.count("*").alias("events"), F.sum("impressions").alias("total_impressions")]
    rows = job.timed("impressions").groupBy(key, window.alias("w")).agg(*sums)
    job.write(rows.select(key, _iso("w.start").alias("window_start"), _iso("w.end").alias("window_end"), "events", "total_impressions"))


def interval_join(job: Plain) -> None:
    """Two streams, both with watermarks."""
    left, right = job.timed("impressions").alias("i"), job.timed("clicks").alias("c")
    near = F.expr("i.id = c.id AND c.time >= i.time AND c.time <= i.time + INTERVAL 60 SECONDS")
    job.write(left.join(right, near).select("i.id", F.expr("c.at - i.at").alias("after_ms")))


def dedup(job: Plain) -> None:
    """Keys are kept for a day of event time."""
    orders = job.parsed("orders").withColumn("time", F.timestamp_millis("at")).withWatermark("time", "1 day")
    job.write(orders.dropDuplicatesWithinWatermark(["id"]).select("id"))


def keyed_function(job: Plain) -> None:
    """State of each key in Python, by groups in pandas."""
    rows = job.parsed("orders").groupBy("customer")
    counted = rows.applyInPandasWithState(
        _milestones, "customer STRING, orders BIGINT", "orders BIGINT", "append", GroupStateTimeout.NoTimeout
    )
    job.write(counted)


def _milestones(key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    count = state.get[0] if state.exists else 0
    before = count
    count += sum(len(frame) for frame in frames)
    state.update((count,))
    reached = range(before // 100 * 100 + 100, count + 1, 100)
    yield pd.DataFrame({"customer": [key[0]] * len(reached), "orders": list(reached)})


def files(job: Plain) -> None:
    """Spark's own file sink."""
    job.write(job.parsed("events").where("event_type = 'view'").select("ad_id", "user_id", "event_time"))


def user_credit(job: Plain) -> None:
    """Two streams, and a call for each pair."""
    a, b = job.timed("a").alias("a"), job.timed("b").alias("b")
    near = "a.token = b.token AND b.time BETWEEN a.time - INTERVAL 60 SECONDS AND a.time + INTERVAL 60 SECONDS"
    pairs = a.join(b, F.expr(near)).select(
        "a.token",
        "a.user_id",
        "a.amount",
        "b.credit_limit",
        F.col("a.event_timestamp").alias("a_timestamp"),
        F.col("b.event_timestamp").alias("b_timestamp"),
    )
    assert job.workload.service is not None
    ask = partial(_with_limits, job.configuration.connections[job.workload.service])
    job.write(pairs.mapInPandas(ask, f"{_ddl(pairs)}, new_limit DOUBLE"))


def _ddl(frame: DataFrame) -> str:
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in frame.schema.fields)


def _with_limits(url: str, frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """The rows with the answer to each, ten calls at a time."""
    import aiohttp

    async def ask(client: aiohttp.ClientSession, turn: asyncio.Semaphore, row: Mapping[Hashable, Any]) -> float:
        asked = {name: row[name] for name in ("token", "user_id", "amount", "credit_limit")}
        async with turn, client.post("/limits", json=asked) as answer:
            answer.raise_for_status()
            return float((await answer.json())["new_limit"])

    async def all_of(rows: list[dict[Hashable, Any]]) -> list[float]:
        turn = asyncio.Semaphore(_CALLS)
        limit = aiohttp.ClientTimeout(total=3)
        async with aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(limit=_CALLS), timeout=limit) as client:
            return await asyncio.gather(*(ask(client, turn, row) for row in rows))

    for frame in frames:
        yield frame.assign(new_limit=asyncio.run(all_of(frame.to_dict("records"))))


def flights(job: Plain) -> None:
    """A left join by few keys."""
    left, right = job.timed("flights").alias("f"), job.timed("weather").alias("w")
    near = "f.origin = w.origin AND w.time BETWEEN f.time - INTERVAL 60 MINUTES AND f.time + INTERVAL 60 MINUTES"
    ours = [f"f.{name}" for name in ("id", "carrier", "flight", "origin", "dest", "distance", "time_hour")]
    rows = left.join(right, F.expr(near), "left").select(*ours, F.col("w.time_hour").alias("weather_hour"), "w.temp", "w.precip")
    job.write(rows)


JOBS: dict[str, Callable[[Plain], None]] = {
    one.__name__: one
    for one in (ads, ads_redis, error_logs, tumbling, sessions, interval_join, dedup, keyed_function, files, user_credit, flights)
}


class _Events(LightListener):
    # A job need not have a listener: what PySpark's own costs is not to be counted as plain's.
    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._names: dict[Any, str | None] = {}
        self.ended = threading.Event()

    def emit(self, event: str, **detail: object) -> None:
        self._out.write(json.dumps({"event": event, **detail}) + "\n")
        self._out.flush()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        self._names[event.id] = event.name

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        progress = event.progress
        self.emit("committed", query=progress.name, batch=progress.batchId, rows=progress.numInputRows, durationMs=progress.durationMs)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        self.emit("idle", query=self._names.get(event.id))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        self.ended.set()


def main() -> int:
    """Runs a job until it is stopped."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streaming.plain")
    parser.add_argument("configuration", type=Path)
    parser.add_argument("--events", type=Path, required=True)
    arguments = parser.parse_args()
    configuration = RuntimeConfiguration.read(arguments.configuration)
    spec = yaml.safe_load(Path(configuration.spec).read_text(encoding="utf-8"))
    builder = SparkSession.builder.appName(spec["metadata"]["name"]).master(configuration.master)
    for key, value in {**configuration.spark_conf, **CONF}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("WARN")
    with arguments.events.open("a", encoding="utf-8") as out:
        events = _Events(out)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: events.ended.set())
        session.streams.addListener(events)
        job = Plain(configuration, spec, session)
        JOBS[job.workload.name](job)
        job.keep_broken()
        events.emit("reading", ui=session.sparkContext.uiWebUrl)
        events.ended.wait()
        faults = [str(query.exception()) for query in job.queries if query.exception() is not None]
        session.stop()
    print("\n".join(faults), file=sys.stderr)
    return 5 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
