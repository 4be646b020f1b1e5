"""Penstock, and plain PySpark: the same engine with the same settings, a driver process each."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from benchmarks.streaming.contestants.place import CHECKPOINTS, OUTPUT, SLOTS, Place
from benchmarks.streaming.round_result import MicroBatch, phases_ms
from benchmarks.streaming.workload import Output
from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.spec import load
from penstock.jobs.targets import targets
from penstock.scripts import layout
from penstock.scripts.local.driver import LocalDriver
from penstock.sizing.plan import plan
from penstock.sizing.violation import raise_violations

# What the names of queries begin with that only keep what does not parse.
BROKEN_QUERY = "broken"
# The connection of a sink that writes to Redis.
REDIS = "results"


class RunningDriver:
    """A driver whose events are read as they come.

    Args:
        driver: the driver.
        s3_requests: how many requests S3 has had.
    """

    def __init__(self, driver: LocalDriver, s3_requests: Callable[[], int]) -> None:
        self._driver = driver
        self._s3_requests, self._s3_requests_before = s3_requests, s3_requests()
        self.records = 0
        self.micro_batches: list[MicroBatch] = []
        self.failure: Exception | None = None
        self.idle = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def pid(self) -> int:
        """Of the driver; its JVM and Python workers descend from it."""
        return self._driver.pid

    def _listen(self) -> None:
        while self.failure is None:
            try:
                event = self._driver.next_event(1)
            except Exception as error:
                self.failure = error
                return
            if event is not None and not str(event.get("query", "")).startswith(BROKEN_QUERY):
                self._take(event)

    def _take(self, event: dict[str, Any]) -> None:
        if event["event"] == "committed":
            self._committed(event)
        elif event["event"] == "idle" and self.records:
            self.idle.set()

    def _committed(self, event: dict[str, Any]) -> None:
        requests = self._s3_requests()
        self.records += event["rows"]
        self.micro_batches.append(
            MicroBatch(event["rows"], phases_ms(event.get("phasesMs", event["durationMs"])), requests - self._s3_requests_before)
        )
        self._s3_requests_before = requests


class _PlainDriver(LocalDriver):
    def __init__(self, configuration: RuntimeConfiguration, place: Place) -> None:
        super().__init__(configuration, folder=place.folder, log=place.folder / "driver.log", environment=place.credentials)
        program = "benchmarks.streaming.plain"
        self._supervised.argv = [program if word == "penstock.jobs.driver.runtime" else word for word in self._supervised.argv]


@contextmanager
def penstock(place: Place) -> Iterator[RunningDriver]:
    """Penstock's driver with the job's app."""
    spec = place.folder / "job.yaml"
    spec.write_text(yaml.safe_dump(_spec(place)), encoding="utf-8")
    planned = plan(targets(load(spec), [layout.ROOT]))
    raise_violations(planned.violations)
    driver = LocalDriver(
        _configuration(place, planned.spark_conf), folder=place.folder, log=place.folder / "driver.log", environment=place.credentials
    )
    with driver:
        yield RunningDriver(driver, place.s3_requests)


@contextmanager
def plain(place: Place) -> Iterator[RunningDriver]:
    """Plain PySpark, see `benchmarks.streaming.plain`."""
    (place.folder / "job.yaml").write_text(yaml.safe_dump(_spec(place)), encoding="utf-8")
    with _PlainDriver(_configuration(place, {}), place) as driver:
        yield RunningDriver(driver, place.s3_requests)


def _configuration(place: Place, planned: dict[str, str]) -> RuntimeConfiguration:
    return RuntimeConfiguration(
        spec=str(place.folder / "job.yaml"),
        app_path=(str(layout.ROOT),),
        master=f"local[{SLOTS}]",
        brokers=place.brokers,
        job_folder=f"s3a://{CHECKPOINTS}/{place.out}",
        output_bucket=OUTPUT,
        connections={REDIS: place.redis, **({} if place.workload.service is None else {place.workload.service: place.service})},
        close_when_idle=True,
        spark_conf={**planned, **place.spark_conf()},
    )


def _spec(place: Place) -> dict[str, Any]:
    workload = place.workload
    return {
        "apiVersion": "penstock/v1",
        "kind": "StreamingJob",
        "metadata": {"name": workload.name.replace("_", "-")},
        "spec": {
            "app": workload.app,
            "parallelism": SLOTS,
            "executor": {"slots": SLOTS, "cores": SLOTS, "memory": "4g"},
            "trigger": workload.trigger,
            "parameters": dict(workload.parameters),
            "sources": {source: _source(place, source, topic) for source, topic in place.topics.items()},
            "sinks": _sinks(place),
            "connections": {} if workload.service is None else {workload.service: "http"},
            **({} if place.backend is None else {"state": {"backend": place.backend}}),
        },
    }


def _source(place: Place, source: str, topic: str) -> dict[str, Any]:
    given = place.workload.app_inputs.get(source, {})
    kafka = {"topic": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": place.records_a_trigger}
    return {**given, "kafka": {**kafka, **given.get("kafka", {})}}


_OUTPUTS: dict[Output, Callable[[Place], dict[str, Any]]] = {
    "topic": lambda place: {"kafka": {"topic": place.out}},
    "files": lambda place: {"files": {"path": place.out, "bucketBy": "none"}},
    "redis": lambda place: {"redis": {"connection": REDIS, "prefix": f"{place.out}:", "key": ["campaign_id", "window_start_ms"]}},
}


def _sinks(place: Place) -> dict[str, Any]:
    out = _OUTPUTS[place.workload.output](place)
    if place.errors is None:
        return {"out": out}
    return {"out": out, **{name: {"kafka": {"topic": place.errors}} for name in place.workload.side_outputs}}
