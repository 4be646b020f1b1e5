"""A job under its own role: S3 denies what the role's statements don't allow, as emulators never do."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.scripts.layout import ROOT
from penstock.scripts.local.checking import check
from penstock.scripts.local.environment import LocalEnvironment
from tests.restricted_run import job_of, restricted_run, run_to_its_end

pytestmark = pytest.mark.emulated

KEYWORD_LINES = ROOT / "jobs/specs/keyword_lines.yaml"


def test_a_job_reads_files_and_writes_files_under_its_own_role(local: LocalEnvironment, tmp_path: Path) -> None:
    with restricted_run(job_of(KEYWORD_LINES), local, tmp_path) as (one, proxy):
        run_to_its_end(one)
        assert proxy.denied == []
        assert {asked.action for asked in proxy.asked} >= {"s3:GetObject", "s3:PutObject", "s3:ListBucket"}
    _, verdict = check(one, one.steps)
    assert verdict.compared and not verdict.differences
