"""``penstock review`` with Spark, which analyzes both versions of an app."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

from penstock.scripts.checking.checks import VARIABLE
from tests.scripts.review.changed_repository import Repository, review


def _job(repository: Repository, name: str) -> Path:
    """Adds a job, as the first one is; its app."""
    app = repository.app.with_name(f"{name}.py")
    app.write_text(repository.app.read_text("utf-8"), "utf-8")
    document = yaml.safe_load(repository.spec.read_text("utf-8"))
    document["metadata"]["name"] = name
    document["spec"]["app"] = f"page_stats.{name}"
    (repository.folder / f"specs/{name}.yaml").write_text(yaml.safe_dump(document), "utf-8")
    first = "    - ../specs/page_views.yaml\n"
    repository.edit(repository.environment, first, f"{first}    - ../specs/{name}.yaml\n")
    return app


def test_an_app_whose_state_does_not_fit_is_refused_and_one_whose_state_does_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "on")
    # A session sets it for its process, and so for what other tests start; this way it is taken back.
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    repository = Repository(tmp_path / "page-stats")
    monkeypatch.chdir(repository.folder)
    windows, broken = _job(repository, "windows"), _job(repository, "broken")
    repository.commit("three jobs")
    repository.edit(repository.app, "page <> '/health'", "page <> '/ready'")
    repository.edit(windows, 'tumbling("1m")', 'tumbling("2m")')
    repository.edit(broken, "def build(job: Job) -> None:\n", "def build(job: Job) -> None:\n    raise KeyError('no')\n")
    found = review(capsys, "main", "-o", "json")
    assert found.code == 1
    fits = found.job()
    assert (fits["outcome"], fits["refused"]) == ("goes on with its state", [])
    assert fits["changes"][0]["why"] == "its operators keep what the checkpoint has"
    (reason,) = found.job("windows")["refused"]
    assert "JOB-094" in reason and "upgradeMode: stateless" in reason
    assert [reason.partition(" ")[0] for reason in found.job("broken")["refused"]] == ["JOB-003"]
