"""Every pipeline that is shipped, under its own role: S3 denies what the role's statements don't allow."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.infra.policies import Statement
from penstock.scripts.layout import ROOT
from penstock.scripts.local.checking import check
from penstock.scripts.local.environment import LocalEnvironment
from penstock.sizing.errors import PenstockError
from tests.emulated.conftest import local
from tests.restricted_run import job_of, restricted_run, run_to_its_end

__all__ = ["local"]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("spec", sorted((ROOT / "jobs/specs").glob("*.yaml")), ids=lambda spec: spec.stem)
def test_a_pipeline_is_denied_nothing(spec: Path, local: LocalEnvironment, tmp_path: Path) -> None:
    with restricted_run(job_of(spec), local, tmp_path) as (one, proxy):
        run_to_its_end(one)
        assert proxy.denied == []
        assert {asked.action for asked in proxy.asked} >= {"s3:PutObject", "s3:ListBucket"}
    _, verdict = check(one, one.steps)
    assert verdict.compared and not verdict.differences


def test_a_job_with_one_statement_less_fails(local: LocalEnvironment, tmp_path: Path) -> None:
    def without_input(granted: list[Statement]) -> list[Statement]:
        return [statement for statement in granted if statement["Sid"] != "ReadInput"]

    with restricted_run(job_of(ROOT / "jobs/specs/keyword_lines.yaml"), local, tmp_path, without_input) as (one, proxy):
        with pytest.raises(PenstockError) as raised:
            run_to_its_end(one)
        assert {denied.action for denied in proxy.denied} == {"s3:GetObject"}
    assert raised.value.code == "JOB-003"
