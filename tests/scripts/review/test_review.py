"""``penstock review``: jobs that a change adds, changes and removes. What Spark compares of the apps is a test of the tier emulated."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from penstock.scripts.cli.command import main
from tests.scripts.review.changed_repository import Repository, review

JSON = ("main", "-o", "json")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    made = Repository(tmp_path / "page-stats")
    monkeypatch.chdir(made.folder)
    return made


def _amounts(quantities: list[dict[str, str]]) -> dict[str, tuple[str, str]]:
    return {one["what"]: (one["before"], one["now"]) for one in quantities}


def test_nothing_differs_where_nothing_has_changed(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    found = review(capsys, *JSON)
    assert (found.code, found.document["fields"], found.document["findings"], found.document["notes"]) == (0, [], [], [])
    shown = {key: value for key, value in found.job().items() if value}
    assert shown.pop("needs")["executors"] == "1"
    assert shown == {"job": "page-views", "kind": "unchanged", "outcome": "unchanged"}
    assert found.document["base"] == repository.git("rev-parse", "main")
    assert "No job differs." in review(capsys, "main", "-o", "markdown").output


def test_a_changed_spec_is_shown_with_what_it_means_and_costs(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    repository.edit(repository.spec, "parallelism: 1", "parallelism: 8")
    repository.edit(repository.spec, "executor: {slots: 1, memory: 3g}", "executor: {slots: 2, memory: 4g}")
    found = review(capsys, *JSON)
    job = found.job()
    assert (found.code, job["kind"], job["outcome"], job["refused"]) == (0, "changed", "goes on with its state", [])
    effects = {change["what"]: (change["before"], change["now"], change["effect"]) for change in job["changes"]}
    assert effects["spec.executor.memory"] == ('"3g"', '"4g"', "restart")
    assert effects["spec.parallelism"][:2] == ("1", "8")
    plan = _amounts(job["plan"])
    assert (plan["executors"], plan["memory of an executor, MiB"]) == (("1", "4"), ("3,072", "4,096"))
    assert _amounts(job["topics"]) == {"partitions of page-views": ("1", "8")}
    cost = found.document["cost"]
    assert (cost["before"], cost["now"]) == plan["USD a month"] and cost["before"] != cost["now"]
    shown = review(capsys, "main").output
    assert "page-views: changed, goes on with its state" in shown and "1 → 4" in shown
    comment = review(capsys, "main", "-o", "markdown").output
    assert comment.startswith("## Jobs of production: can be deployed\n")
    assert "| page-views | changed | goes on with its state | 1 → 4 |" in comment


def test_jobs_are_added_and_gone(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    document = yaml.safe_load(repository.spec.read_text("utf-8"))
    document["metadata"]["name"] = "renamed"
    repository.spec.write_text(yaml.safe_dump(document), "utf-8")
    found = review(capsys, *JSON)
    assert [(job["job"], job["kind"], job["outcome"]) for job in found.document["jobs"]] == [
        ("renamed", "added", "starts"),
        ("page-views", "gone", "ends"),
    ]
    assert _amounts(found.job("renamed")["plan"])["executors"] == ("-", "1")
    assert _amounts(found.job()["plan"])["executors"] == ("1", "-")
    assert found.document["cost"]["before"] == found.document["cost"]["now"]


def test_a_changed_app_and_environment_are_shown(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    repository.edit(repository.folder / "page_stats/sections.py", '"home"\n', '"start"\n')
    text = repository.environment.read_text("utf-8")
    retention = next(line for line in text.splitlines() if "retention: 24h" in line)
    repository.edit(repository.environment, f"{retention}\n", retention.replace("24h", "48h") + "\n")
    found = review(capsys, *JSON)
    (change,) = found.job()["changes"]
    assert (change["what"], change["effect"], change["why"]) == ("app", "restart with state", "its operators were not compared")
    assert _amounts(found.document["fields"]) == {"spec.kafka.retention": ('"24h"', '"48h"')}
    # No path of this machine is in a comment.
    assert str(repository.folder) not in review(capsys, "main", "-o", "markdown").output


def test_a_new_finding_of_lint_is_shown_with_its_job_and_one_that_was_there_is_not(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.edit(repository.spec, "trigger: 10s", 'trigger: 10s\n  sparkConf: {spark.sql.shuffle.partitions: "7"}')
    found = review(capsys, *JSON)
    assert [(one["rule"], one["at"]["file"]) for one in found.job()["findings"]] == [("LINT-055", str(repository.spec))]
    repository.commit("with a finding")
    repository.edit(repository.spec, "idleness: 1m", "idleness: 2m")
    again = review(capsys, "HEAD", "-o", "json")
    assert (again.job()["kind"], again.job()["findings"], again.document["findings"]) == ("changed", [], [])


def test_jobs_that_fit_one_by_one_and_not_together_are_refused(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """Each driver fits within the limit of its pool, and four do not."""
    repository.edit(repository.environment, "      - name: drivers\n", '      - name: drivers\n        limits: {cpu: "2"}\n')
    assert review(capsys, *JSON).document["violations"] == []
    for name in ("second", "third", "fourth"):
        document = yaml.safe_load(repository.spec.read_text("utf-8"))
        document["metadata"]["name"] = name
        (repository.folder / f"specs/{name}.yaml").write_text(yaml.safe_dump(document), "utf-8")
        first = "    - ../specs/page_views.yaml\n"
        repository.edit(repository.environment, first, f"{first}    - ../specs/{name}.yaml\n")
    found = review(capsys, *JSON)
    assert (found.code, [job["refused"] for job in found.document["jobs"]]) == (1, [[], [], [], []])
    assert found.document["violations"][0].startswith("SIZ-")
    assert "refused, all jobs together: SIZ-" in review(capsys, "main").output


def test_two_jobs_of_one_name_are_an_error(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    (repository.folder / "specs/other.yaml").write_bytes(repository.spec.read_bytes())
    first = "    - ../specs/page_views.yaml\n"
    repository.edit(repository.environment, first, f"{first}    - ../specs/other.yaml\n")
    found = review(capsys, "main")
    assert (found.code, "INF-006" in found.errors) == (2, True)


def test_what_a_branch_has_had_since_is_no_part_of_the_change(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    base = repository.git("rev-parse", "main")
    repository.git("switch", "--quiet", "--create", "change")
    repository.edit(repository.spec, "trigger: 10s", "trigger: 20s")
    repository.commit("the change")
    repository.git("switch", "--quiet", "main")
    repository.edit(repository.spec, "outOfOrderness: 10s", "outOfOrderness: 30s")
    repository.commit("of somebody else")
    repository.git("switch", "--quiet", "change")
    found = review(capsys, *JSON)
    assert [change["what"] for change in found.job()["changes"]] == ["spec.trigger"]
    assert found.document["base"] == base


def test_a_change_that_the_state_does_not_survive_is_refused_unless_the_spec_gives_the_state_up(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.edit(repository.spec, "  trigger: 10s\n", "  trigger: 10s\n  state: {backend: memory}\n")
    refused = review(capsys, *JSON)
    assert (refused.code, refused.job()["outcome"]) == (1, "refused")
    assert any("spec.state.backend" in reason for reason in refused.job()["refused"]), refused.job()
    assert "refused: page-views" in review(capsys, "main", "-o", "markdown").output
    repository.edit(repository.spec, "  trigger: 10s\n", "  trigger: 10s\n  upgradeMode: stateless\n  restartNonce: 1\n")
    found = review(capsys, *JSON)
    assert (found.code, found.job()["outcome"], found.job()["refused"]) == (0, "begins without its state", [])


def test_a_plan_that_no_node_can_run_is_refused(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    repository.edit(repository.spec, "memory: 3g", "memory: 30000g")
    found = review(capsys, *JSON)
    assert (found.code, found.job()["outcome"]) == (1, "refused")
    assert found.job()["refused"][0].startswith("SIZ-")


def test_a_base_that_has_no_such_environment_or_a_spec_that_cannot_be_read_is_a_note(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository.folder / "environments/new.yaml").write_bytes(repository.environment.read_bytes())
    text = repository.folder / "environments/new.yaml"
    repository.edit(text, "name: production", "name: new")
    found = review(capsys, *JSON, "-e", "new")
    assert (found.document["notes"], found.job()["kind"]) == (["the environment is new"], "added")
    repository.edit(repository.spec, "parallelism: 1", "parallelism: none")
    broken = repository.commit("broken")
    repository.edit(repository.spec, "parallelism: none", "parallelism: 2")
    found = review(capsys, broken, "-o", "json")
    assert (found.code, found.job()["kind"]) == (0, "added")
    assert len(found.document["notes"]) == 1 and "at the base" in found.document["notes"][0]
    repository.git("checkout", "--quiet", "--", ".")
    wrong = review(capsys, *JSON)
    assert wrong.code == 2 and "SPEC-" in wrong.output


def test_no_commit_and_no_repository_are_errors(
    repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for base in ("nowhere", "--output=x", ""):
        found = review(capsys, "--", base)
        assert (found.code, "REV-002" in found.errors) == (2, True)
    # A commit without a common one.
    subprocess.run(["git", "switch", "--quiet", "--orphan", "other"], cwd=repository.folder, check=True)
    other = Repository(tmp_path / "other")
    monkeypatch.chdir(other.folder)
    assert review(capsys, repository.git("rev-parse", "main")).code == 2
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    found = review(capsys, "main")
    assert (found.code, "REV-001" in found.errors) == (2, True)
    monkeypatch.setenv("PATH", "")
    found = review(capsys, "main")
    assert (found.code, "TOOL-001" in found.errors) == (4, True)
    assert main(["review", "--help"]) == 0


def test_a_parallelism_of_the_environment_is_a_change_of_the_job(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    entry = "../specs/page_views.yaml"
    repository.edit(repository.environment, f"- {entry}", f"- {{spec: {entry}, parallelism: 6}}")
    found = review(capsys, *JSON)
    job = found.job()
    assert (found.code, job["kind"], job["refused"]) == (0, "changed", [])
    assert [(change["what"], change["before"], change["now"]) for change in job["changes"]] == [("spec.parallelism", "1", "6")]
    assert _amounts(job["topics"]) == {"partitions of page-views": ("1", "6")}
    assert _amounts(found.document["fields"])["spec.jobs[0].parallelism"] == ("not set", "6")
