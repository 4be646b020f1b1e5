"""A job under full load, its driver and its executors each in a control group with the plan's limit."""

from __future__ import annotations

import os
import shutil
import socket
import statistics
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict

from benchmarks.pod_memory.control_group import ControlGroup, ControlGroups, Usage
from benchmarks.pod_memory.disk import DiskUse, disk_use
from benchmarks.pod_memory.measured_jobs import EXECUTORS, JOBS, SLOTS_OF_AN_EXECUTOR, MeasuredJob
from benchmarks.pod_memory.parts import TRACKED, Parts, parts
from benchmarks.streaming.contestants.place import CHECKPOINTS, OUTPUT, Place
from benchmarks.streaming.contestants.spark import RunningDriver
from benchmarks.streaming.rounds import Bench
from penstock.infra.manifests.client_mode_conf import DEFAULTS
from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.spec import load
from penstock.jobs.targets import targets
from penstock.scripts import layout
from penstock.scripts.local import class_data
from penstock.scripts.local.driver import LocalDriver
from penstock.scripts.local.spark_cluster import ExecutorSize, SparkCluster, SparkWorker
from penstock.scripts.progress import Steps
from penstock.sizing.plan import plan
from penstock.sizing.planned import Plan
from penstock.sizing.violation import raise_violations

_EVERY_S, _PARTS_EVERY = 1.0, 10
# Until the executors have read the state's first records.
_FULL_WITHIN_S = 600.0
_DRIVER = "driver"
_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
_USED = "states_usedBytes_Value"
# `spark.driver.memory` and others of the plan's sparkConf that only Kubernetes has.
_KUBERNETES = "spark.kubernetes."


class Pod(BaseModel):
    """A pod's memory and disk over the time of full load, in MiB.

    Args:
        name: driver, or the name of a worker with its executor.
        limit_mib: of the plan, and of its control group.
        rss_mib: highest RSS.
        median_rss_mib: its median.
        working_set_mib: highest working set.
        median_working_set_mib: its median.
        parts: by part, when they were the most together.
        disk: the most of each kind of file.
        kills: processes that the kernel has killed for the limit.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    name: str
    limit_mib: int
    rss_mib: float
    median_rss_mib: float
    working_set_mib: float
    median_working_set_mib: float
    parts: Parts
    disk: DiskUse
    kills: int


class MeasuredRun(BaseModel):
    """One job.

    Args:
        job: its name.
        full_heap: whether all pages of the heaps were touched at the start.
        seconds: of full load.
        records: that were read in them.
        micro_batches: that were committed in them.
        plan: the parts of the plan's JSON that say what a pod needs.
        pods: the driver, and the executors.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    job: str
    full_heap: bool
    seconds: float
    records: int
    micro_batches: int
    plan: dict[str, Any]
    pods: list[Pod]


@dataclass
class _Watched:
    """A pod that is being watched."""

    name: str
    group: ControlGroup
    limit_mib: int
    folders: list[Path]
    logs: Path
    used: list[Usage] = field(default_factory=list)
    parts: list[Parts] = field(default_factory=list)
    disk: DiskUse = field(default_factory=DiskUse)

    def pod(self) -> Pod:
        return Pod(
            name=self.name,
            limit_mib=self.limit_mib,
            rss_mib=max(one.rss_mib for one in self.used),
            median_rss_mib=statistics.median(one.rss_mib for one in self.used),
            working_set_mib=max(one.working_set_mib for one in self.used),
            median_working_set_mib=statistics.median(one.working_set_mib for one in self.used),
            parts=max(self.parts, key=lambda one: one.total_mib),
            disk=self.disk,
            kills=self.group.kills(),
        )


def measure(bench: Bench, name: str, seconds: float, steps: Steps, *, share: float, full_heap: bool) -> MeasuredRun:
    """Runs a job for some time of full load.

    Args:
        bench: broker and S3.
        name: of the job.
        seconds: of full load.
        steps: shows progress.
        share: of the records.
        full_heap: whether the JVMs touch all pages of their heaps at the start, as they may in the course of days.

    Raises:
        RuntimeError: the driver has failed.
        TimeoutError: the state was not filled in time.
    """
    job = JOBS[name]
    filled = bench.fill(job.workload, int(job.records * share))
    place = bench.place("penstock", job.workload, f"memory-{name}", filled.records, filled.topics)
    planned = _plan(place, job)
    with steps.at("run", name) as step, _running(place, planned, full_heap=full_heap) as (running, watched, port):
        _wait_until_full(running, watched, job.after_records)
        before, batches, started = running.records, len(running.micro_batches), time.monotonic()
        _watch(running, watched, port if planned.state.backend == "rocksdb" else None, seconds)
        took = time.monotonic() - started
        run = MeasuredRun(
            job=name,
            full_heap=full_heap,
            seconds=took,
            records=running.records - before,
            micro_batches=len(running.micro_batches) - batches,
            plan=planned.model_dump(by_alias=True, mode="json", include=_INCLUDED),
            pods=[one.pod() for one in watched],
        )
        step.said = f"{name}: {took:.0f} s, {run.records:,} records in {run.micro_batches} micro-batches"
    return run


_INCLUDED = {"pods", "executor_overhead", "driver_needs", "executor_storage", "driver_storage", "read_limit", "state"}


def _plan(place: Place, job: MeasuredJob) -> Plan:
    """The plan for the job's load, which also decides on its pods' memory."""
    workload = job.workload
    sources = {
        source: {**given, "kafka": {"topic": place.topics[source], "startingOffsets": "earliest", **given.get("kafka", {})}}
        for source, given in ((source, workload.app_inputs.get(source, {})) for source in place.topics)
    }
    out = {"files": {"path": place.out, "bucketBy": "none"}} if workload.output == "files" else {"kafka": {"topic": place.out}}
    spec = {
        "app": workload.app,
        "load": dict(job.load()),
        "executor": {"slots": SLOTS_OF_AN_EXECUTOR, "cores": 1},
        "parameters": dict(workload.parameters),
        "sources": sources,
        "sinks": {"out": out, **{side: {"kafka": {"topic": place.errors}} for side in workload.side_outputs}},
        "connections": {} if workload.service is None else {workload.service: "http"},
    }
    document = {"apiVersion": "penstock/v1", "kind": "StreamingJob", "metadata": {"name": workload.name.replace("_", "-")}, "spec": spec}
    file = place.folder / "job.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    planned = plan(targets(load(file), [layout.ROOT]))
    raise_violations(planned.violations)
    assert planned.pods.executor.count == EXECUTORS, planned.pods
    return planned


@contextmanager
def _running(place: Place, planned: Plan, *, full_heap: bool) -> Iterator[tuple[RunningDriver, list[_Watched], int]]:
    """The job on a standalone cluster."""
    executor, driver = planned.pods.executor, planned.pods.driver
    size = ExecutorSize(SLOTS_OF_AN_EXECUTOR, executor.heap_mib, executor.overhead_mib)
    with ExitStack() as held:
        groups = held.enter_context(ControlGroups(f"penstock-benchmark-{os.getpid()}"))
        own = groups.add(_DRIVER, driver.memory_mib)
        for number in range(1, EXECUTORS + 1):
            groups.add(f"worker-{number}", executor.memory_mib)
        environment = {**place.credentials, "JAVA_HOME": str(_java_home(place.folder / "jdk", groups.folder))}
        cluster = held.enter_context(SparkCluster(place.folder / "spark", executors=EXECUTORS, size=size, environment=environment))
        port = _free_port()
        options = _options(planned, full_heap=full_heap)
        conf = {**DEFAULTS, **_shared_classes(), **_planned_conf(planned), **cluster.spark_conf, **_conf(place, port), **options}
        scratch = Path(conf["spark.local.dir"])
        started = _GroupedDriver(_configuration(place, planned, cluster.url, conf), place, own)
        held.enter_context(started)
        running = RunningDriver(started, place.s3_requests)
        watched = [_Watched(_DRIVER, own, driver.memory_mib, [scratch], place.folder / "driver.log")]
        watched += [_of_worker(worker, groups, executor.memory_mib) for worker in cluster.workers]
        yield running, watched, port


class _GroupedDriver(LocalDriver):
    """A driver in a control group."""

    def __init__(self, configuration: RuntimeConfiguration, place: Place, group: ControlGroup) -> None:
        super().__init__(configuration, folder=place.folder, log=place.folder / "driver.log", environment=place.credentials)
        self._supervised.argv = ["/bin/sh", "-c", f'echo $$ > "{group.processes_file}"; exec "$@"', "sh", *self._supervised.argv]


def _of_worker(worker: SparkWorker, groups: ControlGroups, limit_mib: int) -> _Watched:
    return _Watched(worker.name, groups.groups[worker.name], limit_mib, [worker.folder], worker.work_folder)


def _java_home(folder: Path, groups: Path) -> Path:
    """A JAVA_HOME whose java starts in the control group of the worker in whose folder for executors it is: a worker starts its executor
    itself, and a JVM looks at its limits only once.
    """
    java = shutil.which("java")
    assert java is not None
    (folder / "bin").mkdir(parents=True)
    wrapper = folder / "bin" / "java"
    wrapper.write_text(
        "#!/bin/sh\n"
        'case "$PWD" in *-executors/*)\n'
        "  worker=${PWD%-executors/*}\n"
        f'  echo $$ > "{groups}/${{worker##*/}}/cgroup.procs" ;;\n'
        "esac\n"
        f'exec "{Path(java).resolve()}" "$@"\n',
        encoding="utf-8",
    )
    wrapper.chmod(0o755)
    return folder


def _planned_conf(planned: Plan) -> dict[str, str]:
    return {key: value for key, value in planned.spark_conf.items() if not key.startswith(_KUBERNETES)}


def _shared_classes() -> dict[str, str]:
    """In the place of the image's archive of classes, which has another class path."""
    return {f"spark.{kind}.defaultJavaOptions": class_data.options() for kind in ("driver", "executor")}


def _options(planned: Plan, *, full_heap: bool) -> dict[str, str]:
    """As in the pods, whose entry point gives the executors' JVM all of its heap at once."""
    heaps = {"driver": planned.pods.driver.heap_mib if full_heap else None, "executor": planned.pods.executor.heap_mib}
    options = {
        kind: [TRACKED, *([f"-Xms{heap}m"] if heap else []), *(["-XX:+AlwaysPreTouch"] if full_heap else [])]
        for kind, heap in heaps.items()
    }
    return {
        f"spark.{kind}.extraJavaOptions": " ".join((DEFAULTS[f"spark.{kind}.extraJavaOptions"], *words)) for kind, words in options.items()
    }


def _conf(place: Place, port: int) -> dict[str, str]:
    """Where the driver finds S3, its folder and its jars; but for the memory, which is the plan's."""
    conf = place.spark_conf()
    for key in ("spark.driver.memory", "spark.sql.shuffle.partitions", *_OPTIONS):
        conf.pop(key, None)
    return {**conf, "spark.ui.port": str(port), "spark.port.maxRetries": "0"}


def _configuration(place: Place, planned: Plan, master: str, conf: Mapping[str, str]) -> RuntimeConfiguration:
    service = place.workload.service
    return RuntimeConfiguration(
        spec=str(place.folder / "job.yaml"),
        app_path=(str(layout.ROOT),),
        master=master,
        brokers=place.brokers,
        job_folder=f"s3a://{CHECKPOINTS}/{place.out}",
        output_bucket=OUTPUT,
        connections={} if service is None else {service: place.service},
        max_offsets_per_trigger=None if planned.read_limit is None else planned.read_limit.records,
        spark_conf=dict(conf),
    )


def _wait_until_full(running: RunningDriver, watched: list[_Watched], records: int) -> None:
    """Until the state is filled, at least until the second micro-batch has ended."""
    until_s = time.monotonic() + _FULL_WITHIN_S
    while running.records < records or len(running.micro_batches) < 2:
        _check(running, watched)
        if time.monotonic() > until_s:
            raise TimeoutError(f"{running.records:,} of {records:,} records were read within {_FULL_WITHIN_S:.0f} s")
        time.sleep(_EVERY_S)


def _watch(running: RunningDriver, watched: list[_Watched], port: int | None, seconds: float) -> None:
    """Samples until the time is over, or the topics are read to their end, after which there is no load."""
    until_s, sample = time.monotonic() + seconds, 0
    while time.monotonic() < until_s and not running.idle.is_set():
        _check(running, watched)
        begun = time.monotonic()
        for one in watched:
            one.used.append(one.group.usage())
            one.disk = one.disk.most(disk_use(one.folders, _files(one.logs)))
        if sample % _PARTS_EVERY == 0:
            _take_parts(watched, port)
        sample += 1
        time.sleep(max(0.0, _EVERY_S - (time.monotonic() - begun)))


def _take_parts(watched: list[_Watched], port: int | None) -> None:
    # The other backend reports its state on the heap.
    rocksdb_mib = 0 if port is None else _rocksdb_mib(port) / EXECUTORS
    for one in watched:
        if now := parts(one.group.processes(), 0 if one.name == _DRIVER else rocksdb_mib):
            one.parts.append(now)


def _rocksdb_mib(port: int) -> float:
    """Memory of all state stores, as the driver reports it after each micro-batch.

    Source: Spark 4.3.0, MetricsReporter: states-usedBytes of each query.
    """
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics/prometheus", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        # The driver's end is noticed elsewhere.
        return 0.0
    return sum(float(line.split()[-1]) for line in lines if _USED in line.split("{")[0]) / (1024 * 1024)


def _check(running: RunningDriver, watched: list[_Watched]) -> None:
    if running.failure is not None:
        killed = ", ".join(f"{one.group.kills()} processes of {one.name}" for one in watched if one.group.kills())
        raise RuntimeError(f"the driver has failed; killed for its limit: {killed or 'nothing'}") from running.failure


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else [file for file in path.rglob("std*") if file.is_file()]


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
