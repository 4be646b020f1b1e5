"""A repository that ``penstock init`` makes works at once: its tests, which run its job, its plan and cdktf.

``penstock up`` in it, and what is edited, are tests of the tier chaos.
"""

from __future__ import annotations

import pytest

from tests import built_wheel, own_repository
from tests.own_repository import Team


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Team:
    return own_repository.create(tmp_path_factory.mktemp("team"), built_wheel.build(tmp_path_factory.mktemp("wheel")))


def test_its_tests_pass(team: Team) -> None:
    assert "7 passed" in team.succeeds("python", "-m", "pytest", "-p", "no:cacheprovider")


def test_its_specs_have_no_findings_and_its_plan_is_feasible(team: Team) -> None:
    assert "no findings" in team.succeeds("penstock", "lint", "specs/page_views.yaml", "--no-check")
    team.succeeds("penstock", "size", "specs/page_views.yaml", "--no-check", "-e", "dev")


def test_cdktf_synthesizes_its_stacks(team: Team) -> None:
    team.cdktf("synth", environment="production")
    assert (team.folder / "cdktf.out/manifest.json").is_file()
