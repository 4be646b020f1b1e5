"""What the job depends on does not answer for two minutes: it goes on, or starts again, and every row comes out once."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from penstock.scripts.local.environment import LocalEnvironment
from tests.pods.cluster_under_test import ClusterUnderTest
from tests.pods.job_run import Faults, run_of, run_to_the_end
from tests.pods.pod_run import ReleasedJob
from tests.pods.team_job import CHECKPOINTS, Surroundings, small_spec

OUTAGE_S = 120


def frozen(pid: int) -> None:
    """Freezes a process for the time of an outage: its connections stay, and nothing answers on them."""
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(OUTAGE_S)
    finally:
        os.kill(pid, signal.SIGCONT)


def committed(local: LocalEnvironment, job: str) -> int:
    """How many micro-batches a job has recorded."""
    pages = local.s3.get_paginator("list_objects_v2").paginate(Bucket=CHECKPOINTS, Prefix=f"{job}/checkpoints/1/penstock/batches/")
    return sum(len(page.get("Contents", [])) for page in pages)


def test_no_row_is_lost_or_doubled_through_outages_of_two_minutes(
    cluster: ClusterUnderTest, local: LocalEnvironment, around: Surroundings, helm: Path, tmp_path: Path
) -> None:
    assert cluster.own is not None or cluster.nodes
    counts: dict[str, list[int]] = {}

    def counting(name: str, pid: Callable[[], int]) -> Callable[[ReleasedJob], None]:
        def outage(job: ReleasedJob) -> None:
            before = committed(local, job.name)
            frozen(pid())
            counts[name] = [before, committed(local, job.name)]

        outage.__name__ = f"{name}_is_away_for_{OUTAGE_S}_s"
        return outage

    faults: Faults = {1: counting("the_API_server", lambda: cluster.api_server), 2: counting("the_broker", lambda: local.kafka.pid)}
    with run_of(small_spec("flights", tmp_path), cluster, local, around, helm, tmp_path) as run:
        verdict = run_to_the_end(run, faults, failures_allowed=3)
    assert verdict.compared
    assert not verdict.differences
    before, after = counts["the_API_server"]
    assert after > before, "without the API server the job goes on"
