"""Local runs with executors of their own that are killed midway, which takes minutes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from penstock.scripts.cli.up import _job
from penstock.scripts.errors import SparkClusterDied
from penstock.scripts.local import kafka_topics
from penstock.scripts.local.environment import LocalEnvironment
from penstock.scripts.local.machine import cut_to_executors
from penstock.scripts.local.run import LocalRun
from penstock.scripts.progress import Steps
from tests.emulated.clicks import LIMIT_S, SPEC, processes, until, up, wait_until_gone


def test_killed_hard_it_leaves_no_process_of_its_executors(spec: Path, temporary: Path) -> None:
    running = up(spec, temporary, "--executors", "2", "--keep")
    # All of the executors and the driver run.
    until(running, r"^  spark .*is reading")
    assert len([line for line in processes(temporary) if "CoarseGrainedExecutorBackend" in line]) == 2
    running.kill()
    running.communicate(timeout=60)
    wait_until_gone(temporary)


# Three drivers, one after another.
@pytest.mark.timeout(1200)
def test_a_master_or_a_worker_that_dies_midway_ends_the_run_and_loses_nothing(local: LocalEnvironment, spec: Path, tmp_path: Path) -> None:
    # Without a micro-batch in the checkpoint, the default would start the next driver at the topic's end.
    spec.write_text(SPEC.replace("partitions: 2}", "partitions: 2, startingOffsets: earliest}"), encoding="utf-8")
    job = _job(spec, [], Steps())
    machine = cut_to_executors(job.plan, 1)
    kafka_topics.create(local.kafka.address, job.plan.kafka.topics)
    local.wait_for_buckets()
    fed: dict[str, kafka_topics.Fed] = {}
    for number, name in enumerate(("master", "worker-1", "")):
        run = LocalRun(job, local, machine, tmp_path / f"driver-{number}", Steps(), fed=fed)
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
