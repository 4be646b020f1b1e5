"""Upgrades of a running job whose code fails in its first micro-batch: Helm rolls them back by itself, and the job runs on as it was."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.deployable import deployable_plans
from penstock.infra.environment_file import load as load_environment
from penstock.jobs.spec import load
from penstock.jobs.storage.job_folder import JobFolder
from penstock.scripts.local.environment import LocalEnvironment
from penstock.scripts.operations import evidence
from penstock.scripts.operations.evidence import Awaited
from penstock.scripts.operations.job_changes import job_changes
from penstock.scripts.operations.job_status import status_of
from tests.kube.evidence import wait_for
from tests.pods import team_job
from tests.pods.cluster_under_test import ClusterUnderTest
from tests.pods.job_run import run_of, run_to_the_end
from tests.pods.pod_run import ReleasedJob
from tests.pods.team_job import CHECKPOINTS, ENVIRONMENT, Surroundings, small_spec

SPEC, JOB = "page_counts", "page-counts"
# Neither the check nor the plan of the query sees that a page has a name of one character, and so that this divides by zero.
RIGHT, WRONG = "WHERE page <> '/health'", "WHERE page <> '/health' AND 100 / (length(page) - 1) < 101"
# Of a change that never becomes ready all of it is waited for; a driver on busy cores needs two to five minutes.
READY_S = 480


def spec_of(folder: Path, **changes: Any) -> Path:
    """The spec for a job with one executor, which starts sooner than two."""
    return small_spec(SPEC, folder, batches=2, parallelism=2, **changes)


def wrong_spec(folder: Path, mode: str) -> Path:
    """The spec with an app whose code fails."""
    spec = spec_of(folder, upgradeMode=mode)
    app = folder / f"{SPEC}.sql"
    text = app.read_text("utf-8")
    assert RIGHT in text
    app.write_text(text.replace(RIGHT, WRONG), encoding="utf-8")
    return spec


def about_to_change(spec: Path, environment: Path, local: LocalEnvironment) -> list[Awaited]:
    """The job as a deploy notes it before it applies a change."""
    loaded = load_environment(str(environment))
    changes = job_changes(deployable_plans(loaded), loaded, local.s3)
    return evidence.awaited(changes, [load(spec)], CHECKPOINTS, local.s3)


@pytest.mark.parametrize(("mode", "checkpoints"), [("last-state", [1, 1, 1]), ("stateless", [1, 2, 1])])
def test_a_change_whose_code_fails_is_rolled_back_and_no_row_is_lost_or_doubled(
    cluster: ClusterUnderTest,
    local: LocalEnvironment,
    around: Surroundings,
    helm: Path,
    tmp_path: Path,
    mode: str,
    checkpoints: list[int],
) -> None:
    spec, wrong, place = spec_of(tmp_path), wrong_spec(tmp_path / "wrong", mode), tmp_path / "release-wrong"
    release = team_job.release(wrong, around, place)

    with run_of(spec, cluster, local, around, helm, tmp_path) as run:

        def the_code_of_a_change_fails(job: ReleasedJob) -> None:
            jobs = about_to_change(wrong, place / ENVIRONMENT, local)
            assert [one.name for one in jobs] == [JOB]
            (before,) = job.pods("driver")
            with ThreadPoolExecutor(1) as pool:
                ended = pool.submit(job.tried, release, READY_S)
                # The check has passed by then. The driver of before may have read all that there was.
                wait_for(lambda: any(pod.metadata.uid != before.metadata.uid for pod in job.pods("driver")), READY_S)
                run.feed_more()
                done = ended.result()
            assert done.returncode != 0
            assert "rolled back" in done.stderr, done.stderr
            assert "DIVIDE_BY_ZERO" in evidence.failures(jobs, CHECKPOINTS, local.s3)[JOB]
            (after,) = job.pods("driver")
            assert (after.status.container_statuses[0].ready, after.status.container_statuses[0].restart_count) == (True, 0)
            assert status_of(load(spec), CHECKPOINTS, local.s3, datetime.now(UTC)).state == "running"

        run.parts = 2
        verdict = run_to_the_end(run, {1: the_code_of_a_change_fails}, failures_allowed=50)
        folder = JobFolder(f"s3a://{CHECKPOINTS}/{JOB}", local.s3)
        generations = [folder.generation(number) for number in folder.generations()]
    assert [generation.checkpoint for generation in generations] == checkpoints
    right = generations[0].fingerprint
    assert [generation.fingerprint == right for generation in generations] == [True, False, True]
    assert verdict.compared
    assert not verdict.differences
