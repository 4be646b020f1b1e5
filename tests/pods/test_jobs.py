"""Shipped jobs in pods: released by Helm, run by the kubelet, and every row read back."""

from __future__ import annotations

from pathlib import Path

from penstock.scripts.local.environment import LocalEnvironment
from tests.pods.cluster_under_test import ClusterUnderTest
from tests.pods.job_run import run_of, run_to_the_end
from tests.pods.team_job import Surroundings, small_spec


def test_every_row_of_the_worked_example_comes_out_right(
    cluster: ClusterUnderTest, local: LocalEnvironment, around: Surroundings, helm: Path, tmp_path: Path
) -> None:
    spec = small_spec("user_credit", tmp_path)
    with run_of(spec, cluster, local, around, helm, tmp_path) as run:
        verdict = run_to_the_end(run)
    assert verdict.compared
    assert not verdict.differences


def test_a_bounded_run_completes_with_every_row(
    cluster: ClusterUnderTest, local: LocalEnvironment, around: Surroundings, helm: Path, tmp_path: Path
) -> None:
    with run_of(small_spec("backfill", tmp_path), cluster, local, around, helm, tmp_path) as run:
        verdict = run_to_the_end(run)
    assert verdict.compared
    assert not verdict.differences
