"""Upgrades of a running job with the check before them: one is refused and the driver runs on, the next one is taken."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from penstock.scripts.local.environment import LocalEnvironment
from penstock.scripts.operations.refused_upgrades import refusals
from tests.pods import team_job
from tests.pods.cluster_under_test import ClusterUnderTest
from tests.pods.job_run import Faults, run_of, run_to_the_end
from tests.pods.pod_run import ReleasedJob
from tests.pods.team_job import CHECKPOINTS, Surroundings, small_spec

SPEC, JOB = "page_counts", "page-counts"
IDENTITY = f"{JOB}/checkpoints/1/penstock/identity"


def test_a_refused_upgrade_leaves_the_driver_and_a_taken_one_loses_no_row(
    cluster: ClusterUnderTest, local: LocalEnvironment, around: Surroundings, helm: Path, tmp_path: Path
) -> None:
    changed = team_job.release(small_spec(SPEC, tmp_path / "changed", batches=4, trigger="3s"), around, tmp_path / "release-changed")
    ended: list[int] = []

    def the_checkpoint_seems_to_be_gone(job: ReleasedJob) -> None:
        since = datetime.now(UTC) - timedelta(minutes=1)
        (before,) = job.pods("driver")
        identity = local.s3.get_object(Bucket=CHECKPOINTS, Key=IDENTITY)["Body"].read()
        local.s3.delete_object(Bucket=CHECKPOINTS, Key=IDENTITY)
        done = job.checked(changed)
        local.s3.put_object(Bucket=CHECKPOINTS, Key=IDENTITY, Body=identity)
        assert "pre-upgrade hooks failed" in done.stderr
        assert refusals(cluster.core.api_client, since)[JOB].startswith("error[JOB-086]")
        (after,) = job.pods("driver")
        assert (after.metadata.uid, after.status.container_statuses[0].restart_count) == (before.metadata.uid, 0)
        ended.append(done.returncode)

    def the_spec_is_changed(job: ReleasedJob) -> None:
        done = job.checked(changed)
        assert done.returncode == 0, done.stderr
        ended.append(done.returncode)

    faults: Faults = {1: the_checkpoint_seems_to_be_gone, 2: the_spec_is_changed}
    with run_of(small_spec(SPEC, tmp_path, batches=4), cluster, local, around, helm, tmp_path) as run:
        verdict = run_to_the_end(run, faults)
    assert ended == [1, 0]
    assert verdict.compared
    assert not verdict.differences
