"""The watch finds a query that hangs, and none that is slow, idle, or beside one that hangs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.listener import QueryProgressEvent, QueryStartedEvent, QueryTerminatedEvent, StreamingQueryListener

from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.scripts import layout
from penstock.scripts.local.spark_cluster import fast_start
from tests.jobs.spark.running import CHECKPOINTS, OUTPUT, Surroundings, TestedJob

HELD = "tests.jobs.spark.apps.held"
_FOUND_WITHIN_S = 60


def _row(name: str | Path) -> dict[str, str]:
    return {"key": "k", "at": "2025-04-05T12:30:00Z", "name": str(name)}


def _job(surroundings: Surroundings, limit_s: float, *sources: str, **spec: Any) -> TestedJob:
    job = surroundings.job(HELD, sources=dict.fromkeys(sources, 1), **spec)
    job.progress_timeout_s = limit_s
    other = {"files": {"path": f"{job.name}-other", "prefix": "part-", "roll": {"interval": "1ms"}}}
    return job.edit(lambda asked: asked["sinks"].update(other=other)) if len(sources) > 1 else job


def test_tasks_that_take_longer_than_half_the_limit_are_not_taken_for_hung_ones(surroundings: Surroundings) -> None:
    job = _job(surroundings, 7.0, "a")
    with job.running() as running:
        # The first one starts Python's workers.
        for number, seconds in enumerate(("0", "4", "4")):
            job.feed("a", _row(seconds))
            running.until_read({"a": [number + 1]})
    assert running.hung.empty()
    assert len(job.rows()) == 3


@pytest.mark.parametrize("trigger", ["1ms", "1h"])
def test_an_idle_query_is_not_taken_for_a_hung_one(surroundings: Surroundings, trigger: str) -> None:
    # Longer than the start of a query, which is watched too.
    job = _job(surroundings, 5.0, "a", trigger=trigger)
    with job.running() as running:
        # Only the clock can show that nothing happens.
        assert not running.stop.wait(11.0)
    assert running.hung.empty()


def test_a_query_that_hangs_beside_one_that_runs_is_found_and_named(
    surroundings: Surroundings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = _job(surroundings, 12.0, "a", "b")
    job.feed("a", _row("0"))
    job.feed("b", _row("0"))
    with job.running() as running:
        # Python's workers have started by then.
        running.until_read({"a": [1], "b": [1]})
        job.feed("b", _row(tmp_path / "let"))
        fault = running.hung.get(timeout=_FOUND_WITHIN_S)
        (tmp_path / "let").touch()
        running.until_read({"b": [2]})
    assert running.hung.empty()
    assert fault.path == f"{HELD}, query {job.name}.other"
    assert fault.given.startswith("micro-batch 1, without progress since ")
    assert "1 of 1 tasks running, 0 ended, 0 failed, on executor driver" in fault.given
    log = capsys.readouterr().err
    assert f"stream execution thread for {job.name}.other [" in log, "the stack of Spark's thread of the query"
    assert f"stream execution thread for {job.name} [" not in log
    assert len(job.rows()) == 1


class _Held(StreamingQueryListener):
    """Holds the start of a query, which Spark ends only after its listeners have heard of it."""

    def __init__(self) -> None:
        self.let = threading.Event()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        self.let.wait()

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass


def test_a_query_whose_start_hangs_is_found(surroundings: Surroundings, capsys: pytest.CaptureFixture[str]) -> None:
    job, held = _job(surroundings, 5.0, "a"), _Held()
    job.feed("a", _row("0"))
    surroundings.session.streams.addListener(held)
    try:
        with job.running() as running:
            fault = running.hung.get(timeout=_FOUND_WITHIN_S)
            held.let.set()
            running.until_read({"a": [1]})
    finally:
        held.let.set()
        surroundings.session.streams.removeListener(held)
    assert running.hung.empty()
    assert fault.given.startswith("micro-batch 0, without progress since ")
    assert fault.given.endswith("Spark does not get to the end of its start")
    log = capsys.readouterr().err
    assert "in start" in log and "stream execution thread for " in log, "the stacks of the driver's thread and of Spark's"


def test_a_hung_micro_batch_ends_the_process_with_its_code_and_the_stack_of_the_function(surroundings: Surroundings) -> None:
    job = _job(surroundings, 10.0, "a")
    job.feed("a", _row("/never"))
    driver = _started(job)
    try:
        out, log = driver.communicate(timeout=120)
        events = [json.loads(line) for line in out.splitlines()]
        assert driver.returncode == 5
        assert [event["event"] for event in events] == ["starting", "generation", "reading", "failed"]
        ((fault,),) = [event["errors"] for event in events if "errors" in event]
        assert (fault["code"], fault["path"]) == ("JOB-090", HELD)
        assert "error[JOB-090]: micro-batch hangs" in log
        assert f'{Path("apps", "held.py")}", line ' in log, "Python's stack of the function"
        # Spark's output ends with its JVM: `communicate` has read all of it.
    finally:
        with suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)


def _started(job: TestedJob) -> subprocess.Popen[str]:
    """The driver as a process, in a group of its own."""
    folder = job.around.folder
    given = job.around.session.sparkContext.getConf()
    conf = {key: given.get(key) or "" for key in ("spark.hadoop.fs.s3a.endpoint", "spark.hadoop.fs.s3a.endpoint.region")}
    configuration = RuntimeConfiguration(
        spec=str(job.spec),
        master="local[1]",
        brokers=job.around.brokers,
        job_folder=f"s3a://{CHECKPOINTS}/{job.name}",
        output_bucket=OUTPUT,
        progress_timeout_s=job.progress_timeout_s,
        spark_conf={
            **conf,
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
            "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in layout.spark_jars()),
            "spark.driver.memory": "1g",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": f"{fast_start()} -Djava.io.tmpdir={folder}",
            "spark.local.dir": str(folder),
            "spark.ui.enabled": "false",
            # Without it after half of the limit, which is short here: Python's worker takes as long to start.
            "spark.python.worker.tracebackDumpIntervalSeconds": "1",
        },
    )
    file = folder / "runtime.json"
    configuration.write(file)
    command = [sys.executable, "-m", "penstock.jobs.driver.runtime", str(file)]
    environment = {**os.environ, "PYTHONPATH": layout.python_path()}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment, cwd=folder, start_new_session=True, **pipes)
