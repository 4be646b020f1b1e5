"""Spark's standalone cluster: executors in processes of their own, with what an image would give them, and nothing left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.scripts.errors import PortInUse, SparkClusterDied, SparkClusterNotReady
from penstock.scripts.layout import ROOT, python_path
from penstock.scripts.local import class_data
from penstock.scripts.local.spark_cluster import ExecutorSize, SparkCluster
from penstock.scripts.progress import Steps

# For what has no event to wait for; nothing here takes this long.
WITHIN_S = 120
SIZE = ExecutorSize(slots=1, heap_mib=512, overhead_mib=256)
NOT_OF_THE_IMAGE = ("SPARK_OF_A_TEAM", "OF_A_TEAM")
# Reports where its tasks run and what they see there, then goes on with a task on each executor until it is killed.
DRIVER = """
import json, os, sys, time
from pyspark.sql import SparkSession

builder = SparkSession.builder.master(sys.argv[1])
for key, value in json.loads(sys.argv[2]).items():
    builder = builder.config(key, value)
context = builder.getOrCreate().sparkContext

def task(_):
    import app_of_a_team, penstock.jobs.job
    names = ("AWS_ACCESS_KEY_ID", "SPARK_EXECUTOR_DIRS", "TMPDIR", "PYTHONSAFEPATH", "SPARK_OF_A_TEAM", "OF_A_TEAM")
    time.sleep(1)
    return {"pid": os.getpid(), "app": app_of_a_team.NAME} | {name: os.environ.get(name) for name in names}

print(json.dumps(context.parallelize(range(2), 2).map(task).collect()), flush=True)
context.parallelize(range(2), 2).foreachPartition(lambda _: time.sleep(600))
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    app = tmp_path_factory.mktemp("a team's jobs")
    (app / "app_of_a_team.py").write_text("NAME = 'clicks'", encoding="utf-8")
    given = {"AWS_ACCESS_KEY_ID": "emulated"}
    assert class_data.make(Steps())
    with pytest.MonkeyPatch.context() as patch:
        for name in NOT_OF_THE_IMAGE:
            patch.setenv(name, "1")
        running = SparkCluster(app / "spark cluster", executors=2, size=SIZE, environment=given, app_path=[app])
    with running:
        yield running


@pytest.fixture(scope="module")
def tasks(cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict[str, Any]]]:
    """What a driver's tasks saw, one on each executor; the driver goes on with another on each."""
    folder = tmp_path_factory.mktemp("driver")
    (folder / "driver.py").write_text(DRIVER, encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": python_path(), "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, str(folder / "driver.py"), cluster.url, json.dumps(cluster.spark_conf)]
    with (folder / "driver.log").open("w") as log:
        driver = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)
    try:
        assert driver.stdout is not None
        yield json.loads(driver.stdout.readline())
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.communicate()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SparkCluster]:
    with SparkCluster(tmp_path / "spark", executors=1, size=SIZE, environment={}) as running:
        yield running


def _exists(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False


def _wait(fulfilled: Callable[[], object]) -> None:
    until_s = time.monotonic() + WITHIN_S
    while not fulfilled():
        assert time.monotonic() < until_s
        time.sleep(0.05)


def _fault_of(cluster: SparkCluster) -> str:
    try:
        cluster.check()
    except SparkClusterDied as error:
        return error.render()
    return ""


# The tests of the one cluster come in the order of its life.
def test_each_worker_has_one_executor_with_what_an_image_would_give_it(cluster: SparkCluster, tasks: list[dict[str, Any]]) -> None:
    assert [len(worker.executor_pids()) for worker in cluster.workers] == [1, 1]
    assert len({cluster.pid, *(worker.pid for worker in cluster.workers), *cluster.executor_pids()}) == 5
    assert {task["app"] for task in tasks} == {"clicks"}
    assert {task["AWS_ACCESS_KEY_ID"] for task in tasks} == {"emulated"}
    assert {task["PYTHONSAFEPATH"] for task in tasks} == {"1"}
    assert {task[name] for task in tasks for name in NOT_OF_THE_IMAGE} == {None}
    # Each has a disk of its own.
    assert {task["TMPDIR"] for task in tasks} == {str(worker.folder / "tmp") for worker in cluster.workers}
    for worker in cluster.workers:
        assert len([task for task in tasks if task["SPARK_EXECUTOR_DIRS"].startswith(f"{worker.folder}/local/")]) == 1
        assert [log.name for log in worker.executor_logs()] == ["stderr"]
    cluster.check()


def test_all_of_its_jvms_map_the_archive_of_sparks_classes(cluster: SparkCluster, tasks: list[dict[str, Any]]) -> None:
    """A JVM unmaps one that does not fit, without a word."""
    archive = class_data.options().split('"')[1].partition("=")[2]
    daemons = [cluster.pid, *(worker.pid for worker in cluster.workers)]
    for pid in [*daemons, *cluster.executor_pids()]:
        # At another address than it was made for, all of it is written to.
        assert re.search(f" r--p .* {re.escape(archive)}$", Path(f"/proc/{pid}/maps").read_text(encoding="utf-8"), re.MULTILINE)


def test_an_executor_that_dies_is_started_again_by_its_worker(cluster: SparkCluster, tasks: list[dict[str, Any]]) -> None:
    worker = cluster.workers[1]
    (before,) = worker.executor_pids()
    os.kill(before, signal.SIGKILL)
    (python,) = [task["pid"] for task in tasks if task["TMPDIR"] == str(worker.folder / "tmp")]
    # Spark's Python workers notice by themselves that their executor is gone.
    _wait(lambda: not _exists(python))
    _wait(lambda: worker.executor_pids() not in ([], [before]))
    cluster.check()


def test_a_worker_killed_with_its_disk_is_replaced_by_another(cluster: SparkCluster, tasks: list[dict[str, Any]]) -> None:
    lost = cluster.workers[0]
    pids = [lost.pid, *lost.executor_pids(), *(task["pid"] for task in tasks if task["TMPDIR"] == str(lost.folder / "tmp"))]
    assert len(pids) == 3
    cluster.kill_worker(lost)
    assert not lost.folder.exists()
    _wait(lambda: not any(map(_exists, pids)))
    new = cluster.add_worker()
    assert new.name == "worker-3"
    _wait(lambda: len(new.executor_pids()) == 1)
    cluster.check()


def test_nothing_is_left_after_its_end(cluster: SparkCluster, tasks: list[dict[str, Any]]) -> None:
    pids = [cluster.pid, *(worker.pid for worker in cluster.workers), *cluster.executor_pids(), *(task["pid"] for task in tasks)]
    folders = [worker.folder for worker in cluster.workers]
    cluster.stop()
    _wait(lambda: not any(map(_exists, pids)))
    assert not any(folder.exists() for folder in folders)


def test_a_worker_that_dies_ends_the_run_with_its_own_error(small: SparkCluster) -> None:
    os.kill(small.workers[0].pid, signal.SIGKILL)
    _wait(lambda: not small.workers[0].alive())
    assert "RUN-040" in _fault_of(small)
    assert "worker-1" in _fault_of(small)
    assert "does not replace a worker" in _fault_of(small)


def test_a_master_that_dies_ends_the_run_with_its_own_error(small: SparkCluster) -> None:
    os.kill(small.pid, signal.SIGKILL)
    _wait(lambda: "RUN-040" in _fault_of(small))
    assert str(small.log) in _fault_of(small)


def test_all_of_it_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    program = f"""
from pathlib import Path
from penstock.scripts.local import class_data
from penstock.scripts.local.spark_cluster import ExecutorSize, SparkCluster
from penstock.scripts.progress import Steps
cluster = SparkCluster(Path({str(tmp_path)!r}) / "spark", executors=1, size=ExecutorSize(1, 512, 256), environment={{}}).start()
print(cluster.pid, cluster.workers[0].pid, flush=True)
input()
"""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", program], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert all(map(_exists, pids))
        parent.kill()
    _wait(lambda: not any(map(_exists, pids)))
    _wait(lambda: not (tmp_path / "spark" / "worker-1").exists())


def test_a_port_in_use_is_named_with_how_to_choose_another(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortInUse, match=re.escape(f"127.0.0.1:{port}")) as raised:
            SparkCluster(tmp_path / "spark", executors=1, size=SIZE, environment={}, port=port).start()
    assert "--master-port" in raised.value.render()


def test_it_listens_on_the_port_that_was_asked_for(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as asked:
        port = asked.getsockname()[1]
    with SparkCluster(tmp_path / "spark", executors=1, size=SIZE, environment={}, port=port) as running:
        assert running.url == f"spark://127.0.0.1:{port}"


def test_a_master_that_is_not_ready_in_time_is_named_with_its_log(tmp_path: Path) -> None:
    with pytest.raises(SparkClusterNotReady, match="RUN-041") as raised:
        SparkCluster(tmp_path / "spark", executors=1, size=SIZE, environment={}, start_limit_s=0).start()
    assert "master.log" in raised.value.render()
