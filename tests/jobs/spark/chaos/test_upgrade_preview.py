"""``penstock upgrade preview`` of a job with several queries and calls: with its state, without it, and interrupted."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from penstock.scripts import layout
from penstock.scripts.cli import upgrade
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from tests.chaos import processes
from tests.jobs.spark.running import Surroundings, TestedJob
from tests.jobs.spark.test_upgrade_preview import environment_of, folders, topics_of, written

APP = "tests.jobs.spark.apps.previewed"
FIRST = "2025-04-05T12:30:00.000Z"
_LIMIT_S = 300


@dataclass
class Endpoint:
    """That the job calls.

    Args:
        url: its address.
        asked: the paths of all requests.
    """

    url: str
    asked: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Previewed:
    """A job that has run, and whose spec here multiplies by two.

    Args:
        job: the job.
        words: of the command, up to how it begins.
        since_ms: between the first two of its records and the others.
        endpoint: that it has called.
        others: the folders of other jobs in the buckets.
    """

    job: TestedJob
    words: list[str]
    since_ms: int
    endpoint: Endpoint
    others: frozenset[str]

    def left(self) -> object:
        """All that a preview must not change."""
        return written(self.job.around.s3, self.others), topics_of(self.job.around.brokers, self.job), list(self.endpoint.asked)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"real")

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found = Endpoint(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield found
        server.shutdown()
        thread.join()


@pytest.fixture
def previewed(surroundings: Surroundings, aws: EmulatedAws, endpoint: Endpoint, tmp_path: Path) -> Previewed:
    others = folders(surroundings.s3)
    job = surroundings.job(APP, sources={"a": 1}, parameters={"factor": 1}, connections={"names": "http"})
    job.connections["names"] = endpoint.url
    named = {"files": {"path": f"{job.name}-named", "prefix": "part-", "roll": {"interval": "1ms"}}}
    stubs = {"connections": {"names": {"http": f"{APP}:stub"}}}
    job.edit(lambda spec: (spec["sinks"].update(named=named), spec.update(local=stubs)))
    job.feed("a", _row("30:01", "k", 2), _row("30:02", "l", 1))
    with job.running() as running:
        running.until_read({"a": [2]})
        since_ms = round(time.time() * 1000)
        job.feed("a", _row("30:05", "k", 3), _row("30:41", "m", 1))
        running.until_read({"a": [4]})
    assert [row["name"] for row in job.rows_of("named")] == ["real"] * 4
    job.edit(lambda spec: spec["parameters"].update(factor=2))
    shared = ["--job", job.name, "--brokers", surroundings.brokers, "--app-path", str(layout.ROOT), "--since", str(since_ms)]
    return Previewed(job, ["preview", str(environment_of(aws, job, tmp_path)), *shared], since_ms, endpoint, others)


def _row(clock: str, key: str, n: int) -> dict[str, Any]:
    return {"key": key, "at": f"2025-04-05T12:{clock}Z", "n": n}


def _shown(previewed: Previewed, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    upgrade.add_arguments(parser)
    keys = ["--key", "out=key,begins", "--key", "named=key", "-o", "json"]
    assert upgrade.run(parser.parse_args([*previewed.words, *keys, *words])) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return {**found, "outputs": {one["output"]: one for one in found["outputs"]}}


def test_all_queries_go_on_with_their_state_and_stubs_answer_their_calls(previewed: Previewed, capsys: pytest.CaptureFixture[str]) -> None:
    before = previewed.left()
    found = _shown(previewed, capsys)
    assert (found["withState"], set(found["queries"])) == (True, {"", "named"})
    # The 2 of before that time is in the state of both, and counted once.
    changed = found["outputs"]["out"]["changedRows"]
    assert [(one["before"]["key"], one["before"]["total"], one["after"]["total"]) for one in changed] == [("k", 5, 8), ("m", 1, 2)]
    named = found["outputs"]["named"]
    assert (named["before"], named["after"], named["changed"]) == (2, 2, 2)
    assert [(one["before"]["n"], one["after"]["n"]) for one in named["changedRows"]] == [(3, 6), (1, 2)]
    assert {one[side]["name"] for one in named["changedRows"] for side in ("before", "after")} == {"stub of /k", "stub of /m"}
    assert previewed.left() == before


def test_without_the_state_both_begin_with_the_records_since_then(previewed: Previewed, capsys: pytest.CaptureFixture[str]) -> None:
    before = previewed.left()
    found = _shown(previewed, capsys, "--without-state")
    assert (found["withState"], found["queries"]) == (False, {})
    changed = found["outputs"]["out"]["changedRows"]
    assert [(one["before"]["key"], one["before"]["total"], one["after"]["total"]) for one in changed] == [("k", 3, 6), ("m", 1, 2)]
    assert (found["outputs"]["named"]["before"], found["outputs"]["named"]["changed"]) == (2, 2)
    assert previewed.left() == before


def test_a_preview_that_is_interrupted_leaves_nothing_behind(previewed: Previewed, tmp_path: Path) -> None:
    before, temporary = previewed.left(), tmp_path / "temporary"
    temporary.mkdir()
    variables = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(layout.ROOT), "PYTHONSAFEPATH": "1"}
    command = [sys.executable, "-m", "penstock.scripts", "upgrade", *previewed.words]
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        started = _both_run(process)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=_LIMIT_S)
    assert process.returncode == 130, said.decode()
    assert b"Traceback" not in said
    assert [pid for pid in started if _command(pid) == started[pid]] == []
    assert list(temporary.iterdir()) == []
    assert previewed.left() == before


def _both_run(process: subprocess.Popen[bytes]) -> dict[int, bytes]:
    """All processes that a preview has started, with their commands, once each of the two drivers has its JVM."""
    until_s = time.monotonic() + _LIMIT_S
    while time.monotonic() < until_s:
        assert process.poll() is None, process.communicate()[0].decode()
        found = {pid: _command(pid) for pid in processes.tree(process.pid)}
        if sum(command.split(b"\0")[0].endswith(b"java") for command in found.values()) == 2:
            return found
        time.sleep(0.2)
    raise AssertionError("the drivers do not start")


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
