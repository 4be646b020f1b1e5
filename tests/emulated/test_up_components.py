"""What a local run consists of: executors of its own, and what happens where a component dies midway."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from penstock.jobs.spec import load as load_spec
from penstock.scripts.cli.up import _job
from penstock.scripts.errors import BrokerDied, EmulatorDied
from penstock.scripts.local import kafka_topics
from penstock.scripts.local.environment import LocalEnvironment
from penstock.scripts.local.machine import cut
from penstock.scripts.local.run import LocalRun
from penstock.scripts.progress import Steps
from tests.emulated.clicks import APP_WITH_PYTHON, EXPECTED, LIMIT_S, PAGES, SPEC, up, wait_until_gone


@pytest.mark.chaos
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


def test_an_emulator_that_dies_midway_ends_the_wait_with_its_own_error(local: LocalEnvironment) -> None:
    os.kill(local.aws.pid, signal.SIGKILL)
    with pytest.raises(EmulatorDied, match="RUN-003"):
        local.applied()


@pytest.mark.chaos
def test_a_broker_that_dies_midway_ends_the_run_with_its_own_error(local: LocalEnvironment, spec: Path, tmp_path: Path) -> None:
    job = _job(load_spec(spec), [], Steps())
    run = LocalRun(job, local, cut(job.plan), tmp_path / "driver", Steps())
    kafka_topics.create(local.kafka.address, job.plan.kafka.topics)
    local.wait_for_buckets()
    with run.driver() as driver:
        run.feed(run.records())
        os.kill(local.kafka.pid, signal.SIGKILL)
        with pytest.raises(BrokerDied, match="RUN-010"):
            run.process(driver)
