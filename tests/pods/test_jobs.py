"""Shipped jobs in pods: released by Helm, run by the kubelet, and every row read back."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from penstock.infra.manifests.client_mode_conf import CLASS_DATA
from penstock.scripts.local.environment import LocalEnvironment
from tests.pods.cluster_under_test import ClusterUnderTest
from tests.pods.containers import control_group, processes, programs
from tests.pods.job_run import run_of, run_to_the_end
from tests.pods.phases import Phase, phases, table
from tests.pods.pod_run import ReleasedJob
from tests.pods.team_job import Surroundings, small_spec


def all_jvms_map_the_archive_of_classes(job: ReleasedJob) -> None:
    """A JVM whose class path is another one runs on without it, and says nothing."""
    for pod in [*job.pods("driver"), *job.pods("executor")]:
        group = control_group(job, pod.metadata.name)
        # Not tini, which has the JVM's command line as its arguments.
        jvms = [pid for pid in processes(group, b"/bin/java\0") if Path(f"/proc/{pid}/comm").read_text("utf-8") == "java\n"]
        assert jvms, f"there are {programs(group)}"
        for pid in jvms:
            maps = Path(f"/proc/{pid}/maps").read_text("utf-8")
            # At another address than it was made for, all of it is written to.
            assert re.search(f" r--p .* {CLASS_DATA}$", maps, re.MULTILINE), f"{pod.metadata.name} does not map it"


def test_every_row_of_the_worked_example_comes_out_right(
    cluster: ClusterUnderTest, local: LocalEnvironment, around: Surroundings, helm: Path, tmp_path: Path, tell: Callable[[str], None]
) -> None:
    spec = small_spec("user_credit", tmp_path)
    started: list[Phase] = []

    def look(job: ReleasedJob) -> None:
        started.extend(phases(job))
        tell(table(started))
        if cluster.own:
            all_jvms_map_the_archive_of_classes(job)

    with run_of(spec, cluster, local, around, helm, tmp_path) as run:
        run.looks = {1: look}
        verdict = run_to_the_end(run)
    assert not run.looks
    assert {phase.name for phase in started} >= {"scheduled", "registered with the driver", "first micro-batch committed"}
    assert verdict.compared
    assert not verdict.differences


def test_a_bounded_run_completes_with_every_row(
    cluster: ClusterUnderTest, local: LocalEnvironment, around: Surroundings, helm: Path, tmp_path: Path
) -> None:
    with run_of(small_spec("backfill", tmp_path), cluster, local, around, helm, tmp_path) as run:
        verdict = run_to_the_end(run)
    assert verdict.compared
    assert not verdict.differences
