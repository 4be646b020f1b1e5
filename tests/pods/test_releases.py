"""Releases of a running job: a changed spec, an image that can't be pulled, executors that fit no node; the next release mends them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from penstock.infra.plans import JobPlan
from penstock.jobs.spec import load
from penstock.jobs.targets import targets
from penstock.scripts.local.environment import LocalEnvironment
from penstock.scripts.provisioning import job_pods
from penstock.sizing.plan import plan
from tests.kube.evidence import wait_for
from tests.pods import team_job
from tests.pods.cluster_under_test import ClusterUnderTest
from tests.pods.job_run import Faults, run_of, run_to_the_end
from tests.pods.pod_run import ReleasedJob
from tests.pods.team_job import Surroundings, small_spec

LIMIT_S = 300
# More than a node of the tests has.
TOO_LARGE = {"slots": 2, "cores": "250m", "memory": "60g"}


def said_by_doctor(cluster: ClusterUnderTest, spec: Path) -> Callable[[], str]:
    """What `penstock doctor` says of the job's pods, beside the plan of a spec."""
    file = load(spec)
    asked = targets(file, [])
    job = JobPlan(spec=file, targets=asked, plan=plan(asked))

    def look() -> str:
        (finding,) = job_pods.look(cluster.core.api_client, {job.name: job.plan})
        return finding.said

    return look


def test_no_row_is_lost_or_doubled_through_releases(
    cluster: ClusterUnderTest, local: LocalEnvironment, around: Surroundings, helm: Path, tmp_path: Path
) -> None:
    good = small_spec("flights", tmp_path)
    changed = small_spec("flights", tmp_path / "changed", trigger="3s")
    large = small_spec("flights", tmp_path / "large", executor=TOO_LARGE)
    missing = replace(around, image=f"{around.image.rpartition(':')[0]}:not-there")
    releases = {
        "changed": team_job.release(changed, around, tmp_path / "release-changed"),
        "missing": team_job.release(changed, missing, tmp_path / "release-missing"),
        "large": team_job.release(large, around, tmp_path / "release-large"),
    }
    seen: list[str] = []

    def upgraded(job: ReleasedJob, name: str) -> None:
        seen.append(name)
        job.upgrade(releases[name])

    def until_said(spec: Path, words: str) -> None:
        look = said_by_doctor(cluster, spec)
        wait_for(lambda: words in look(), LIMIT_S)
        seen.append(look())

    def the_spec_is_changed(job: ReleasedJob) -> None:
        upgraded(job, "changed")

    def the_image_cannot_be_pulled(job: ReleasedJob) -> None:
        upgraded(job, "missing")
        until_said(changed, "not-there")
        upgraded(job, "changed")

    def no_node_has_room_for_the_executors(job: ReleasedJob) -> None:
        upgraded(job, "large")
        until_said(large, "executors without a node")
        upgraded(job, "changed")

    faults: Faults = {1: the_spec_is_changed, 2: the_image_cannot_be_pulled, 3: no_node_has_room_for_the_executors}
    with run_of(good, cluster, local, around, helm, tmp_path) as run:
        verdict = run_to_the_end(run, faults)
    assert verdict.compared
    assert not verdict.differences
    _, _, image, _, _, room, _ = seen
    assert image.startswith("flights-driver-0: ")
    assert "Insufficient memory" in room
    assert "by the plan each requests 250m CPU" in room
