"""Plans without AWS, and what `penstock emulate` leaves when it is interrupted."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from penstock.scripts.provisioning.planned_changes import read
from penstock.scripts.provisioning.terraform import Terraform
from tests.emulated.clicks import until, wait_until_gone
from tests.emulated.team import LIMIT_S, bare, desk, emulate, left
from tests.scripts.cli.called import penstock

pytestmark = pytest.mark.emulated

__all__ = ["bare", "desk"]


def test_interrupted_as_it_starts_it_leaves_nothing_and_starts_again(desk: Path, bare: dict[str, str]) -> None:
    for _ in range(2):
        with emulate(desk, bare) as running:
            assert "starting an emulated AWS" in until(running, r"^  start ")
            assert "emulated AWS at http://127.0.0.1:" in until(running, r"^  start ")
            running.send_signal(signal.SIGINT)
            _, rest = running.communicate(timeout=120)
        assert (running.returncode, rest.splitlines()[-1]) == (130, "interrupted")
        assert left(desk) == ["in-use"]
        wait_until_gone(Path(bare["TMPDIR"]))


@pytest.mark.timeout(LIMIT_S)
def test_a_plan_without_credentials_is_against_an_empty_account_and_says_so(desk: Path, bare: dict[str, str]) -> None:
    done = penstock("deploy", "team.yaml", "--plan-only", cwd=desk, environment=bare)
    assert done.returncode == 0, done.stderr
    assert "no AWS credentials" in done.stderr
    assert "offline     a plan against an empty account" in done.stderr
    assert "(a plan against an empty account: AWS and the state are not read" in done.stdout
    assert "Plan: 24 to create" in done.stdout
    # Nothing is kept in the team's folder, least of all a state.
    assert [path.name for path in desk.iterdir()] == ["team.yaml"]


def test_a_deploy_without_credentials_is_still_refused_and_offline_is_for_plans(desk: Path, bare: dict[str, str]) -> None:
    refused = penstock("deploy", "team.yaml", "--yes", cwd=desk, environment=bare)
    assert (refused.returncode, "error[TOOL-030]" in refused.stderr) == (4, True)
    wrong = penstock("deploy", "team.yaml", "--offline", cwd=desk, environment=bare)
    assert (wrong.returncode, "error[USE-001]" in wrong.stderr) == (2, True)
    assert "penstock deploy ENV --plan-only --offline" in wrong.stderr


@pytest.mark.timeout(LIMIT_S)
def test_stacks_synthesized_offline_are_planned_by_terraform_itself_without_credentials(desk: Path, bare: dict[str, str]) -> None:
    done = penstock("synth", "team.yaml", "--offline", "--out", "offline.out", cwd=desk, environment=bare)
    assert done.returncode == 0, done.stderr
    # As cdktf runs it, with nothing of Penstock's around it.
    plan = Terraform(desk / "offline.out" / "stacks" / "checkpoints", environment=bare).plan_to(desk / "plan")
    changes = read("checkpoints", plan)
    assert {change.action for change in changes.changes} == {"create"}
    assert "aws_s3_bucket.output" in {change.address for change in changes.changes}
