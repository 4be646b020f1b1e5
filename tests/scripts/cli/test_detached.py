"""``penstock status``, ``logs`` and ``stop`` of a detached run, as they are called."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.scripts.background.detached_run import DEFAULT_FOLDER, DetachedRun, detach
from penstock.scripts.background.readiness import READY_VARIABLE
from penstock.scripts.progress import Steps
from tests.scripts.cli.called import Called, penstock

# As penstock up does once its jobs are checked: it stays until SIGTERM.
STAYS = f"""
import os, pathlib, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGTERM, signal.SIGUSR1}})
pathlib.Path(os.environ[{READY_VARIABLE!r}]).touch()
print("the verdict is correct", flush=True)
if signal.sigwait({{signal.SIGTERM, signal.SIGUSR1}}) == signal.SIGUSR1:
    print("error[RUN-014]: driver terminated unexpectedly")
    sys.exit(5)
"""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[DetachedRun]:
    """Of the shipped environment ``local``, in a folder of its own."""
    command = [sys.executable, "-I", "-S", "-c", STAYS]
    run = detach(command, "up", "local", ["user-credit", "flights"], Steps(), tmp_path / DEFAULT_FOLDER)
    yield run
    run.stop()


def called(folder: Path, *words: str) -> Called:
    return penstock(*words, cwd=folder)


def test_it_is_found_by_its_environment_and_stopped_by_any_of_its_jobs(run: DetachedRun, tmp_path: Path) -> None:
    status = called(tmp_path, "status", "local")
    assert status.returncode == 0
    said = f"penstock up of user-credit, flights, detached on this machine: running, process {run.pid}, since "
    assert status.stdout.startswith(said)
    (document,) = json.loads(called(tmp_path, "status", "local", "--job", "flights", "-o", "json").stdout)["detached"]
    assert (document["state"], document["pid"], document["cause"]) == ("running", run.pid, "")
    logs = called(tmp_path, "logs", "local", "--job", "flights")
    assert (logs.returncode, logs.stdout) == (0, "the verdict is correct\n")
    refused = called(tmp_path, "logs", "local", "--job", "flights", "--executors")
    assert (refused.returncode, "runs detached on this machine" in refused.stderr) == (2, True)
    stopped = called(tmp_path, "stop", "local", "--job", "flights")
    assert (stopped.returncode, "nothing of its detached run is left" in stopped.stderr) == (0, True)
    assert list((tmp_path / DEFAULT_FOLDER / "local").iterdir()) == []


def test_one_that_has_died_says_why_until_it_is_stopped(run: DetachedRun, tmp_path: Path) -> None:
    assert run.pid is not None
    os.kill(run.pid, signal.SIGUSR1)
    # It follows the log until the end.
    assert called(tmp_path, "logs", "local", "--job", "user-credit", "--follow").stdout.endswith(
        "error[RUN-014]: driver terminated unexpectedly\n"
    )
    status = called(tmp_path, "status", "local")
    assert status.returncode == 1
    assert "failed, since" in status.stdout
    assert "  ended with exit code 5\n  error[RUN-014]: driver terminated unexpectedly\n" in status.stdout
    stopped = called(tmp_path, "stop", "local", "--job", "user-credit")
    assert (stopped.returncode, "it ended with exit code 5" in stopped.stderr) == (0, True)
    assert not run.folder.exists()
