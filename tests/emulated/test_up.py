"""`penstock up` as a user runs it: a job outside of the repo, what goes wrong on the way, and what is left behind."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.infra.environment_file import load
from penstock.scripts.cli.up import _job
from penstock.scripts.errors import BrokerDied, EmulatorDied, SparkClusterDied, SparkClusterNotReady
from penstock.scripts.layout import ROOT
from penstock.scripts.local import kafka_topics
from penstock.scripts.local.environment import LocalEnvironment
from penstock.scripts.local.machine import cut, cut_to_executors
from penstock.scripts.local.run import LocalRun
from penstock.scripts.progress import Steps

pytestmark = pytest.mark.emulated

# All of a run on a busy machine with two cores.
LIMIT_S = 400
APP = """
from penstock.jobs.job import Job

def build(job: Job) -> None:
    clicks = job.source("clicks", "user STRING NOT NULL, at STRING, page STRING")
    job.write(clicks.filter("page <> '/health'").select(user="user", page="page"), "out")
    job.side_output("errors")
"""
SPEC = """
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec:
  app: clicks_app
  parallelism: 2
  executor: {slots: 2, memory: 2g}
  trigger: 1s
  sources:
    clicks: {kafka: {topic: clicks, partitions: 2}, time: {field: at, outOfOrderness: 10s}}
  sinks:
    out: {files: {path: clicks, prefix: clicks-}}
    errors: {kafka: {topic: clicks-errors}}
  local:
    input: {clicks: clicks.jsonl}
"""
EXPECT = """
from collections import Counter
from penstock.jobs.local.recording import Expectation

def expect(recording):
    assert len(recording.records["clicks"]) == 4
    return Expectation(rows=3, quarantined=0, exact=Counter({'{"page": "/", "user": "ann"}': 1, '{"page": "/gone", "user": "zoe"}': 2}))
"""
EXPECTED = EXPECT.replace("rows=3, quarantined=0", "rows=2, quarantined=1").replace(
    """'{"page": "/gone", "user": "zoe"}': 2""", """'{"page": "/cart", "user": "bob"}': 1"""
)
LINES = """\
{"user": "ann", "at": "2025-04-05T12:00:00Z", "page": "/"}
{"user": "bob", "at": "2025-04-05T12:00:01Z", "page": "/cart"}
{"user": "monitor", "at": "2025-04-05T12:00:02Z", "page": "/health"}
not JSON
"""

# A function of the team's that only Python workers call: each executor imports it.
PAGES = """
def short(page):
    # Rows of side outputs pass through as well, without data.
    return page and (page.rstrip("/") or "/")
"""
APP_WITH_PYTHON = APP.replace('page="page"', 'page=udf(pages.short)("page")').replace(
    "from penstock.jobs.job import Job", "import pages\nfrom penstock.jobs.job import Job\nfrom pyspark.sql.functions import udf"
)


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """A job in a folder of its own, beside nothing of this repo."""
    folder = tmp_path / "a team's jobs"
    folder.mkdir()
    (folder / "clicks_app.py").write_text(APP, encoding="utf-8")
    (folder / "clicks.jsonl").write_text(LINES, encoding="utf-8")
    (folder / "clicks.yaml").write_text(SPEC, encoding="utf-8")
    return folder / "clicks.yaml"


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """Where `up` has its folders, so that one sees what it leaves."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    return folder


def _up(spec: Path, temporary: Path, *options: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
    command = [sys.executable, "-m", "penstock.scripts", "up", str(spec), *options]
    return subprocess.Popen(command, env=environment, cwd=spec.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _processes(temporary: Path) -> list[str]:
    """Command lines of the processes that have to do with a folder: each of `up`'s children names it."""
    processes = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue
        if int(folder.name) != os.getpid() and str(temporary).encode() in environment:
            processes.append(line)
    return processes


def _wait_until_gone(temporary: Path) -> None:
    until_s = time.monotonic() + 60
    while _processes(temporary):
        assert time.monotonic() < until_s, f"left behind: {_processes(temporary)}"


def _until(up: subprocess.Popen[str], pattern: str) -> str:
    assert up.stderr is not None
    result = []
    for line in up.stderr:
        result.append(line)
        if re.search(pattern, line):
            return line
    raise AssertionError("".join(result))


def test_a_job_outside_of_the_repo_runs_and_its_counts_are_held(spec: Path, temporary: Path) -> None:
    up = _up(spec, temporary)
    out, result = up.communicate(timeout=LIMIT_S)
    assert up.returncode == 0, result
    assert "clicks: 1 executor x 2 slots" in out
    assert "2 rows in 1 file" in result
    assert "1 in topic clicks-errors" in result
    assert "correct: rows in = out + quarantined + late + filtered" in result
    assert re.search(r"stack checkpoints: \d+ created", result), result
    assert list(temporary.iterdir()) == []
    _wait_until_gone(temporary)


def test_a_bounded_run_reads_what_is_there_and_ends(spec: Path, temporary: Path) -> None:
    spec.write_text(
        SPEC.replace("trigger: 1s", "trigger: availableNow").replace("partitions: 2}", "startingOffsets: earliest}"), encoding="utf-8"
    )
    up = _up(spec, temporary)
    _, result = up.communicate(timeout=LIMIT_S)
    assert up.returncode == 0, result
    assert "correct: rows in = out + quarantined + late + filtered" in result
    assert "4 records (clicks 4)" in result


def test_a_wrong_result_is_a_failure_that_shows_the_rows(spec: Path, temporary: Path) -> None:
    (spec.parent / "clicks_expect.py").write_text(EXPECT, encoding="utf-8")
    spec.write_text(SPEC + "    expect: clicks_expect:expect\n", encoding="utf-8")
    up = _up(spec, temporary)
    _, result = up.communicate(timeout=LIMIT_S)
    assert up.returncode == 1, result
    assert "error[RUN-016]" in result
    assert "rows: got 2, expected 3" in result
    assert '2 x {"page": "/gone", "user": "zoe"}' in result
    assert '1 x {"page": "/cart", "user": "bob"}' in result
    assert [folder.name.startswith("penstock-logs-") for folder in temporary.iterdir()] == [True], (
        "the logs of a failure stay, all else goes"
    )
    _wait_until_gone(temporary)


def test_kept_up_it_says_how_to_look_and_an_interrupt_takes_all_of_it_away(spec: Path, temporary: Path) -> None:
    up = _up(spec, temporary, "--keep")
    bucket = _until(up, r"^  bucket ").split("curl ")[1].strip().strip("'")
    listing = subprocess.run(["curl", "-sf", bucket], capture_output=True, text=True, timeout=30, check=True).stdout
    assert "<Key>clicks/dt=2025-04-05/clicks-" in listing
    java = _until(up, r"^  topic ").split("  topic ")[1].strip().replace("NAME", "clicks-errors")
    consumed = subprocess.run(["bash", "-c", f"{java} --max-messages 1"], capture_output=True, text=True, timeout=60, check=False).stdout
    assert '"value":"not JSON"' in consumed
    up.send_signal(signal.SIGINT)
    up.communicate(timeout=120)
    assert up.returncode == 130
    assert list(temporary.iterdir()) == []
    _wait_until_gone(temporary)


def test_killed_hard_it_leaves_no_process(spec: Path, temporary: Path) -> None:
    up = _up(spec, temporary)
    _until(up, r"^  spark .*starting")
    up.kill()
    up.communicate(timeout=60)
    _wait_until_gone(temporary)


def test_executors_of_their_own_give_every_row_and_leave_no_process(spec: Path, temporary: Path) -> None:
    (spec.parent / "clicks_app.py").write_text(APP_WITH_PYTHON, encoding="utf-8")
    (spec.parent / "pages.py").write_text(PAGES, encoding="utf-8")
    (spec.parent / "clicks_expect.py").write_text(EXPECTED, encoding="utf-8")
    spec.write_text(SPEC + "    expect: clicks_expect:expect\n", encoding="utf-8")
    up = _up(spec, temporary, "--executors", "2")
    _, result = up.communicate(timeout=LIMIT_S)
    assert up.returncode == 0, result
    assert re.search(r"^  cluster +spark://127.0.0.1:\d+ with 2 workers; UI at http://127.0.0.1:\d+ ", result, re.MULTILINE)
    assert re.search(r"^  spark +a driver with 2 executors of \d slots? and [\d,]+ MiB of heap is reading", result, re.MULTILINE)
    assert "correct: all rows" in result
    assert list(temporary.iterdir()) == []
    _wait_until_gone(temporary)


def test_killed_hard_it_leaves_no_process_of_its_executors(spec: Path, temporary: Path) -> None:
    up = _up(spec, temporary, "--executors", "2", "--keep")
    # All of the executors and the driver run.
    _until(up, r"^  spark .*is reading")
    assert len([line for line in _processes(temporary) if "CoarseGrainedExecutorBackend" in line]) == 2
    up.kill()
    up.communicate(timeout=60)
    _wait_until_gone(temporary)


@pytest.mark.parametrize("option", [["--aws-port"], ["--kafka-port"], ["--executors=1", "--master-port"]], ids=" ".join)
def test_a_port_in_use_is_named_with_how_to_choose_another(spec: Path, temporary: Path, option: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        up = _up(spec, temporary, *option, str(port))
        _, result = up.communicate(timeout=LIMIT_S)
    assert up.returncode == 5, result
    assert "error[RUN-002]" in result
    assert f"127.0.0.1:{port}" in result
    assert option[-1] in result
    assert "Traceback" not in result
    _wait_until_gone(temporary)


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEnvironment]:
    """An environment whose broker and emulator nobody kills."""
    with LocalEnvironment(load("local"), folder=tmp_path_factory.mktemp("lasting"), aws_port=0, kafka_port=0) as environment:
        yield environment


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalEnvironment]:
    folder = tmp_path / "local"
    folder.mkdir()
    with LocalEnvironment(load("local"), folder=folder, aws_port=0, kafka_port=0) as environment:
        yield environment


def test_an_emulator_that_dies_midway_ends_the_wait_with_its_own_error(local: LocalEnvironment) -> None:
    os.kill(local.aws.pid, signal.SIGKILL)
    with pytest.raises(EmulatorDied, match="RUN-003"):
        local.applied()


def test_a_broker_that_dies_midway_ends_the_run_with_its_own_error(local: LocalEnvironment, spec: Path, tmp_path: Path) -> None:
    job = _job(spec, [])
    run = LocalRun(job, local, cut(job.plan), tmp_path / "driver", Steps())
    kafka_topics.create(local.kafka.address, job.plan.kafka.topics)
    local.wait_for_buckets()
    with run.driver() as driver:
        run.feed(run.records())
        os.kill(local.kafka.pid, signal.SIGKILL)
        with pytest.raises(BrokerDied, match="RUN-010"):
            run.process(driver)


# Three drivers, one after another.
@pytest.mark.timeout(1200)
def test_a_master_or_a_worker_that_dies_midway_ends_the_run_and_loses_nothing(
    lasting: LocalEnvironment, spec: Path, tmp_path: Path
) -> None:
    # Without a micro-batch in the checkpoint, the default would start the next driver at the topic's end.
    spec.write_text(SPEC.replace("partitions: 2}", "partitions: 2, startingOffsets: earliest}"), encoding="utf-8")
    job = _job(spec, [])
    machine = cut_to_executors(job.plan, 1)
    kafka_topics.create(lasting.kafka.address, job.plan.kafka.topics)
    lasting.wait_for_buckets()
    fed: dict[str, kafka_topics.Fed] = {}
    for number, name in enumerate(("master", "worker-1", "")):
        run = LocalRun(job, lasting, machine, tmp_path / f"driver-{number}", Steps(), fed=fed)
        with run.driver() as driver:
            # Each of them has something to read, however far the ones before it came.
            run.feed(run.records())
            fed = run.fed
            assert run.cluster is not None
            if name:
                pid = run.cluster.pid if name == "master" else run.cluster.workers[0].pid
                os.kill(pid, signal.SIGKILL)
                _wait_for_the_end(pid)
                with pytest.raises(SparkClusterDied, match="RUN-040") as raised:
                    run.process(driver)
                assert raised.value.path == name
                assert ".log" in raised.value.given
                # As `up` does with it, so that the driver does not wait for executors.
                driver.kill()
            else:
                run.process(driver)
                outcome = run.outcome(None)
    assert (outcome.rows, outcome.quarantined) == (3 * 2, 3 * 1)


def _wait_for_the_end(pid: int) -> None:
    end = time.monotonic() + LIMIT_S
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.timeout(1200)
def test_executors_that_never_register_are_an_error_with_their_log(lasting: LocalEnvironment, spec: Path, tmp_path: Path) -> None:
    spec.write_text(
        SPEC.replace("clicks}", "unserved}")
        .replace("topic: clicks", "topic: unserved")
        .replace("{clicks: clicks.j", "{unserved: clicks.j"),
        encoding="utf-8",
    )
    job = _job(spec, [])
    machine = cut_to_executors(job.plan, 1)
    kafka_topics.create(lasting.kafka.address, job.plan.kafka.topics)
    lasting.wait_for_buckets()
    # No worker has so much memory, so the master waits for another.
    unfit = {"spark.executor.memory": "64g", "spark.scheduler.maxRegisteredResourcesWaitingTime": "1s"}
    # Every executor ends as it starts.
    ending = {"spark.executor.extraJavaOptions": "-agentlib:no-such-agent"}
    for conf, given in ((unfit, ("0 of 1 executor;", "master.log")), (ending, ("1 executor", "ended while the driver waited", "stderr", "no-such-agent"))):
        folder = tmp_path / f"driver-{len(conf)}"
        run = LocalRun(job, lasting, replace(machine, spark_conf={**machine.spark_conf, **conf}), folder, Steps())
        with pytest.raises(SparkClusterNotReady, match="RUN-041") as raised, run.driver():
            pass
        assert [text for text in given if text not in raised.value.given] == []
