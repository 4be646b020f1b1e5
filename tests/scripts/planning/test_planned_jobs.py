"""From the words of a command line to plans."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.scripts.planning.planned_jobs import planned_job, where
from penstock.sizing.errors import PenstockError
from tests.infra.environments import BARE, written

ROOT = Path(__file__).resolve().parents[3]
SPEC = ROOT / "jobs/specs/user_credit.yaml"


def test_an_environment_is_found_by_its_name_and_by_its_path(tmp_path: Path) -> None:
    by_name, by_path = where("production"), where(str(written(tmp_path)))
    assert by_name.cluster is not None
    assert by_name.environment == by_path.environment
    assert by_name.cluster == by_path.cluster


def test_an_environment_without_a_cluster_plans_pods_alone() -> None:
    result = where(BARE)
    assert result.cluster is None
    job = planned_job(SPEC, result)
    assert (job.name, job.plan.nodes, job.plan.cost) == ("user-credit", None, None)


def test_the_plan_is_of_the_spec_in_the_environment() -> None:
    job = planned_job(SPEC, where("production"))
    assert job.plan.nodes is not None
    assert job.plan.nodes.environment == job.where.environment.name == "production"
    assert job.targets.parallelism is not None
    assert job.targets.parallelism.value == job.plan.parallelism.value == 10


@pytest.mark.parametrize(("environment", "catalog", "code"), [("prod", None, "INF-001"), ("production", Path("none.json"), "SPEC-001")])
def test_what_does_not_exist_is_a_coded_error(environment: str, catalog: Path | None, code: str) -> None:
    with pytest.raises(PenstockError) as raised:
        where(environment, catalog)
    assert raised.value.code == code
