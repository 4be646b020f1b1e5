"""What a local run consists of: executors of its own, and what happens where a component dies midway."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.infra.environment_file import load
from penstock.scripts.cli.up import _job
from penstock.scripts.errors import BrokerDied, EmulatorDied, SparkClusterNotReady
from penstock.scripts.local import kafka_topics
from penstock.scripts.local.environment import LocalEnvironment
from penstock.scripts.local.machine import cut, cut_to_executors
from penstock.scripts.local.run import LocalRun
from penstock.scripts.progress import Steps
from tests.emulated.clicks import APP_WITH_PYTHON, EXPECTED, LIMIT_S, PAGES, SPEC, up, wait_until_gone

pytestmark = pytest.mark.emulated


def test_executors_of_their_own_give_every_row_and_leave_no_process(spec: Path, temporary: Path) -> None:
    (spec.parent / "clicks_app.py").write_text(APP_WITH_PYTHON, encoding="utf-8")
    (spec.parent / "pages.py").write_text(PAGES, encoding="utf-8")
    (spec.parent / "clicks_expect.py").write_text(EXPECTED, encoding="utf-8")
    spec.write_text(SPEC + "    expect: clicks_expect:expect\n", encoding="utf-8")
    running = up(spec, temporary, "--executors", "2")
    _, result = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 0, result
    assert re.search(r"^  cluster +spark://127.0.0.1:\d+ with 2 workers; UI at http://127.0.0.1:\d+ ", result, re.MULTILINE)
    assert re.search(r"^  spark +a driver with 2 executors of \d slots? and [\d,]+ MiB of heap is reading", result, re.MULTILINE)
    assert "correct: all rows" in result
    assert list(temporary.iterdir()) == []
    wait_until_gone(temporary)


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEnvironment]:
    """An environment whose broker and emulator nobody kills."""
    with LocalEnvironment(load("local"), folder=tmp_path_factory.mktemp("lasting"), aws_port=0, kafka_port=0) as environment:
        yield environment


def test_an_emulator_that_dies_midway_ends_the_wait_with_its_own_error(local: LocalEnvironment) -> None:
    os.kill(local.aws.pid, signal.SIGKILL)
    with pytest.raises(EmulatorDied, match="RUN-003"):
        local.applied()


def test_a_broker_that_dies_midway_ends_the_run_with_its_own_error(local: LocalEnvironment, spec: Path, tmp_path: Path) -> None:
    job = _job(spec, [], Steps())
    run = LocalRun(job, local, cut(job.plan), tmp_path / "driver", Steps())
    kafka_topics.create(local.kafka.address, job.plan.kafka.topics)
    local.wait_for_buckets()
    with run.driver() as driver:
        run.feed(run.records())
        os.kill(local.kafka.pid, signal.SIGKILL)
        with pytest.raises(BrokerDied, match="RUN-010"):
            run.process(driver)


@pytest.mark.timeout(1200)
def test_executors_that_never_register_are_an_error_with_their_log(lasting: LocalEnvironment, spec: Path, tmp_path: Path) -> None:
    spec.write_text(
        SPEC.replace("clicks}", "unserved}")
        .replace("topic: clicks", "topic: unserved")
        .replace("{clicks: clicks.j", "{unserved: clicks.j"),
        encoding="utf-8",
    )
    job = _job(spec, [], Steps())
    machine = cut_to_executors(job.plan, 1)
    kafka_topics.create(lasting.kafka.address, job.plan.kafka.topics)
    lasting.wait_for_buckets()
    # No worker has so much memory, so the master waits for another.
    unfit = {"spark.executor.memory": "64g", "spark.scheduler.maxRegisteredResourcesWaitingTime": "1s"}
    # Every executor ends as it starts.
    ending = {"spark.executor.extraJavaOptions": "-agentlib:no-such-agent"}
    for conf, given in (
        (unfit, ("0 of 1 executor;", "master.log")),
        # Some number of executors: workers replace them as they end.
        (ending, (" executors ended while the driver waited", "stderr", "no-such-agent")),
    ):
        folder = tmp_path / f"driver-{len(conf)}"
        run = LocalRun(job, lasting, replace(machine, spark_conf={**machine.spark_conf, **conf}), folder, Steps())
        with pytest.raises(SparkClusterNotReady, match="RUN-041") as raised, run.driver():
            pass
        assert [text for text in given if text not in raised.value.given] == []
