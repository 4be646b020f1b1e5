"""Local runs with executors of their own that are killed midway or never register, which takes minutes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.infra.environment_file import load
from penstock.jobs.spec import load as load_spec
from penstock.scripts.cli.up import _job
from penstock.scripts.errors import SparkClusterDied, SparkClusterNotReady
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
    job = _job(load_spec(spec), [], Steps())
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


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEnvironment]:
    """An environment whose broker and emulator nobody kills."""
    with LocalEnvironment(load("local"), folder=tmp_path_factory.mktemp("lasting"), aws_port=0, kafka_port=0) as environment:
        yield environment


def test_executors_that_never_register_are_an_error_with_their_log(lasting: LocalEnvironment, spec: Path, tmp_path: Path) -> None:
    spec.write_text(
        SPEC.replace("clicks}", "unserved}")
        .replace("topic: clicks", "topic: unserved")
        .replace("{clicks: clicks.j", "{unserved: clicks.j"),
        encoding="utf-8",
    )
    job = _job(load_spec(spec), [], Steps())
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
