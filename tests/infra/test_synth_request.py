from __future__ import annotations

from pathlib import Path

import pytest

from penstock.infra.environment_file import load, names
from penstock.infra.plans import plans
from penstock.infra.synth_request import read, request


@pytest.mark.parametrize("name", names())
def test_an_environment_and_its_plans_are_read_back_as_they_were_handed_on(name: str, tmp_path: Path) -> None:
    environment = load(name)
    planned = plans(environment)
    request(environment, planned, ("network",)).write(tmp_path / "request.json")
    received = read(tmp_path / "request.json")
    assert received.environment == environment
    assert received.plans == planned
    assert received.stacks == ("network",)


def test_documents_are_handed_on_so_that_later_findings_name_their_lines(tmp_path: Path) -> None:
    environment = load("production")
    request(environment, plans(environment)).write(tmp_path / "request.json")
    received = read(tmp_path / "request.json")
    assert environment.document is not None
    assert received.environment.document == environment.document
    for spec in (job.spec for job in received.plans.jobs):
        assert spec.document.place(("metadata", "name")).line
        assert Path(spec.document.file) == spec.path


def test_an_environment_that_a_program_made_has_no_document(tmp_path: Path) -> None:
    environment = load("local").of_document(None)
    request(environment, plans(environment)).write(tmp_path / "request.json")
    assert read(tmp_path / "request.json").environment.document is None
