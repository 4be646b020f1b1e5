"""The daemon that Python workers are forked from, in a process: what it has before it forks, and when it gives way to Spark's."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.jobs.python_daemon import IDLE_S_VARIABLE, MODULE, SINGLE_THREADED, without_archives
from penstock.scripts import layout

# For what nothing here takes as long as.
LIMIT_S = 60
_OF_TASKS, _OF_A_PLAN = "pyspark.worker", "pyspark.sql.worker.plan_data_source_read"


@contextmanager
def _daemon(worker: str, variables: Mapping[str, str]) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The daemon's process and port, once it listens, as Spark starts it."""
    inherited = {name: value for name, value in os.environ.items() if name not in SINGLE_THREADED}
    environment = {**inherited, "PYTHONSAFEPATH": "1", "PYTHONPATH": str(layout.ROOT), **variables}
    command = [sys.executable, "-m", MODULE, worker]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        (port,) = struct.unpack("!i", process.stdout.read(4))
        yield process, port
        # Its standard input ends: so Spark tells it to end.
        process.communicate(timeout=LIMIT_S)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
@pytest.mark.parametrize(
    ("worker", "variables", "own", "why"),
    [
        (_OF_TASKS, {}, True, "one thread, so it may fork"),
        (_OF_TASKS, {"OPENBLAS_NUM_THREADS": "2"}, False, "numpy starts a thread"),
        (_OF_A_PLAN, {}, False, "no task"),
    ],
)
def test_it_forks_only_while_it_has_one_thread(worker: str, variables: Mapping[str, str], own: bool, why: str) -> None:
    with _daemon(worker, variables) as (daemon, _):
        process = Path(f"/proc/{daemon.pid}")
        command = process.joinpath("cmdline").read_bytes().split(b"\0")
        has_pandas = b"pandas" in process.joinpath("maps").read_bytes()
        threads = len(list(process.joinpath("task").iterdir()))
    assert (MODULE.encode() in command, b"pyspark.daemon" in command) == (own, not own), why
    assert worker.encode() in command
    assert (has_pandas, threads) == (own, 1)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
def test_one_without_workers_ends_after_a_time_and_one_with_a_worker_does_not() -> None:
    variables = {IDLE_S_VARIABLE: "0.2", "PYTHON_WORKER_FACTORY_SECRET": "secret"}
    with _daemon(_OF_TASKS, variables) as (used, port), socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as task:
        (worker,) = struct.unpack("!i", task.recv(4))
        # Begun later, it ends before.
        with _daemon(_OF_TASKS, variables) as (idle, _):
            assert idle.wait(LIMIT_S) == 1
        assert used.poll() is None
        assert Path(f"/proc/{worker}").exists()
        # With its connection the worker ends.
        task.close()
        assert used.wait(LIMIT_S) == 1


def test_an_archive_of_pyspark_is_left_out_only_where_the_same_lies_unpacked(tmp_path: Path) -> None:
    packages, distribution = tmp_path / "site-packages", tmp_path / "spark" / "python"
    for folder in (packages, distribution):
        (folder / "pyspark").mkdir(parents=True)
        (folder / "pyspark" / "worker.py").touch()
    (packages / "py4j-0.10.9.9.dist-info").mkdir()
    libraries = [packages / "pyspark" / "python" / "lib", distribution / "lib"]
    for library in libraries:
        library.mkdir(parents=True)
    installed, shipped = ([str(library / name) for name in ("pyspark.zip", "py4j-0.10.9.9-src.zip")] for library in libraries)
    other_release = str(libraries[0] / "py4j-0.10.9.8-src.zip")

    assert without_archives([*installed, "", str(packages)]) == ["", str(packages)]
    assert without_archives([*installed, ""]) == [*installed, ""]
    assert without_archives([*shipped, str(distribution)]) == [shipped[1], str(distribution)]
    assert without_archives([*shipped, other_release, str(packages)]) == [shipped[0], other_release, str(packages)]
