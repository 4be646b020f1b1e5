from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from pydantic import ValidationError

from penstock.infra.environment_file import names
from penstock.infra.pipeline import written
from penstock.infra.pipeline.concourse import VARIABLES
from penstock.infra.pipeline.github_actions import ACTIONS
from penstock.infra.pipeline.steps import KIT, TARGETS, Step, Target, check_steps, deploy_steps
from penstock.scripts.cli import command
from penstock.scripts.dev import tiers
from penstock.scripts.emulation.localstack import ENDPOINT_VARIABLE, OLDEST
from penstock.scripts.errors import WrongUsage
from penstock.scripts.layout import ROOT
from penstock.scripts.repository.pipelines import TEAM
from tests.infra.pipeline.concourse_schema import Pipeline

CONCOURSE = written.FOLDER / "concourse.yaml"
GITHUB = written.FOLDER / "github-actions.yaml"
CHECK, DEPLOY = check_steps(KIT), deploy_steps(KIT)
ALL = (*CHECK, *DEPLOY)
# Of a repository that `penstock init` makes.
OF_TEAMS = (*check_steps(TEAM), *deploy_steps(TEAM))
# Values of a script's variables in these tests.
VALUES = {"PENSTOCK_ENVIRONMENT": "production", "base": "main"}


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return Pipeline.model_validate(yaml.safe_load(CONCOURSE.read_text("utf-8")))


@pytest.fixture(scope="module")
def workflow() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(GITHUB.read_text("utf-8"))
    return document


def _concourse_scripts(pipeline: Pipeline) -> dict[str, str]:
    """Job -> the script of its one task."""
    scripts: dict[str, str] = {}
    for job in pipeline.jobs:
        (task,) = job.tasks()
        assert task.config is not None
        assert task.config.run.args[0] == "-c"
        scripts[job.name] = task.config.run.args[1]
    return scripts


def _github_steps(workflow: dict[str, Any], job: str) -> list[dict[str, Any]]:
    return [step for step in workflow["jobs"][job]["steps"] if "id" in step]


def _command_lines(script: str) -> Iterator[list[str]]:
    """The words of each `penstock` command in a script, with variables and patterns expanded as by a shell."""
    for line in script.splitlines():
        match = re.search(r"\.venv/bin/penstock (.+?)(?: \|.*| > .*)?$", line)
        if match is None:
            continue
        words = shlex.split(re.sub(r"\$(\w+)", lambda name: VALUES[name[1]], match[1]))
        yield [one for word in words for one in (sorted(str(path) for path in ROOT.glob(word)) if "*" in word else [word])]


COMMANDS = [
    pytest.param(words, id=f"{of}-{step.name}-{words[0]}")
    for of, steps in (("kit", ALL), ("team", OF_TEAMS))
    for step in steps
    for words in _command_lines(step.script if of == "kit" else step.script.replace(TEAM.specs, KIT.specs))
]


@pytest.mark.parametrize("path", [CONCOURSE, GITHUB], ids=lambda path: path.name)
def test_a_written_pipeline_is_what_its_description_says(path: Path) -> None:
    assert path.read_text("utf-8") == written.files()[path], "run `python -m penstock.infra.pipeline`"


def test_the_workflow_is_one_by_githubs_schema(workflow: dict[str, Any]) -> None:
    package = pytest.importorskip("check_jsonschema")
    schema = json.loads((Path(package.__file__).parent / "builtin_schemas/vendor/github-workflows.json").read_text("utf-8"))
    jsonschema.validate(workflow, schema)
    broken = {**workflow, "jobs": {**workflow["jobs"], "check": {**workflow["jobs"]["check"], "runs_on": "ubuntu"}}}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, schema)


def test_the_guard_refuses_what_concourse_would(pipeline: Pipeline) -> None:
    document = yaml.safe_load(CONCOURSE.read_text("utf-8"))
    document["jobs"][1]["plan"][0]["passed"] = ["no-such-job"]
    with pytest.raises(ValidationError, match="no-such-job"):
        Pipeline.model_validate(document)
    document["jobs"][1]["plan"][0] = {"get": "repository", "triggers": True}
    with pytest.raises(ValidationError, match="triggers"):
        Pipeline.model_validate(document)


def test_both_pipelines_run_the_same_scripts_in_the_same_order(pipeline: Pipeline, workflow: dict[str, Any]) -> None:
    jobs = ["check", *(f"deploy-{target.environment}" for target in TARGETS)]
    assert [job.name for job in pipeline.jobs] == jobs == list(workflow["jobs"])
    scripts = _concourse_scripts(pipeline)
    for job in jobs:
        steps = CHECK if job == "check" else DEPLOY
        assert [(step["id"], step["run"]) for step in _github_steps(workflow, job)] == [(step.name, step.script) for step in steps]
        parts = re.split(r"^echo .*== .*$", scripts[job], flags=re.MULTILINE)
        assert [part.strip() for part in parts[1:]] == [step.script.strip() for step in steps]


def test_jobs_follow_each_other(pipeline: Pipeline, workflow: dict[str, Any]) -> None:
    before = {job.name: [name for get in job.gets() for name in get.passed] for job in pipeline.jobs}
    assert before == {name: job.get("needs", []) for name, job in workflow["jobs"].items()}


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_line_is_one_that_penstock_takes(words: list[str]) -> None:
    verb, *rest = words
    assert verb in command.VERBS
    parser = command._Parser(prog=f"penstock {verb}", allow_abbrev=False)
    import_module(command.VERBS[verb].module).add_arguments(parser)
    parser.parse_args(rest)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.environment)
@pytest.mark.parametrize("name", ["lint", "size"])
def test_what_is_shipped_passes_the_check(name: str, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    (step,) = (step for step in CHECK if step.name == name)
    monkeypatch.setitem(VALUES, "PENSTOCK_ENVIRONMENT", target.environment)
    for words in _command_lines(step.script):
        assert command.main(words) == 0


def test_the_guard_refuses_an_option_that_a_verb_does_not_have() -> None:
    parser = command._Parser(prog="penstock size", allow_abbrev=False)
    import_module(command.VERBS["size"].module).add_arguments(parser)
    with pytest.raises(WrongUsage, match="--no-such-option"):
        parser.parse_args(["jobs/specs/user_credit.yaml", "--no-such-option"])


def test_the_tests_are_run_by_options_that_they_have() -> None:
    for name, tier in (("test", "fast"), ("stacks", "localstack")):
        (step,) = (step for step in CHECK if step.name == name)
        tool, *options = shlex.split(step.script)
        assert (ROOT / tool).is_file()
        assert tiers._parse(options)[0].tier == (tier,)


def test_each_job_does_what_a_deploy_needs_in_order() -> None:
    assert [step.name for step in CHECK] == ["setup", "check", "lint", "size", "review", "test", "synth", "scan", "stacks"]
    # A job's driver needs its image and its topics, and they need the registry and the brokers.
    assert [step.name for step in DEPLOY] == ["setup", "state", "foundation", "image", "topics", "deploy"]


def test_the_environments_are_shipped_ones_and_production_is_last_and_approved() -> None:
    assert {target.environment for target in TARGETS} <= set(names())
    assert [(target.environment, target.approved) for target in TARGETS] == [("dev", False), ("production", True)]


@pytest.mark.parametrize("step", [*ALL, *OF_TEAMS], ids=lambda step: step.name)
def test_every_script_is_one_for_bash(step: Step) -> None:
    subprocess.run(["bash", "-n", "-c", step.script], check=True, timeout=10)


def test_the_whole_scripts_are_ones_for_bash_and_stop_at_the_first_fault(pipeline: Pipeline, workflow: dict[str, Any]) -> None:
    for script in _concourse_scripts(pipeline).values():
        assert script.startswith("set -euo pipefail\n")
        subprocess.run(["bash", "-n", "-c", script], check=True, timeout=10)
    # With this, GitHub runs each script with -e and -o pipefail.
    assert workflow["defaults"]["run"]["shell"] == "bash"


def test_actions_are_pinned_by_their_commit_with_the_release_beside_it(workflow: dict[str, Any]) -> None:
    used = {step["uses"] for job in workflow["jobs"].values() for step in job["steps"] if "uses" in step}
    assert used == {f"{action}@{commit}" for action, (commit, _) in ACTIONS.items()}
    for use in used:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", use)
    text = GITHUB.read_text("utf-8")
    for line in (line for line in text.splitlines() if "uses:" in line):
        assert re.search(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line)


def test_a_job_has_no_right_that_it_does_not_need(workflow: dict[str, Any]) -> None:
    assert workflow["permissions"] == {}
    for name, job in workflow["jobs"].items():
        assert job["permissions"] == {"contents": "read"} | ({"id-token": "write"} if name.startswith("deploy") else {})
        assert job["timeout-minutes"] <= 120
    for step in (step for job in workflow["jobs"].values() for step in job["steps"]):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_there_are_no_long_lived_keys(pipeline: Pipeline) -> None:
    for path in (CONCOURSE, GITHUB):
        text = path.read_text("utf-8")
        assert not re.search(r"aws_(access_key_id|secret_access_key)", text, re.IGNORECASE)
        # The token of a later LocalStack, for those that have one: it opens nothing of AWS.
        assert set(re.findall(r"secrets\.\w+", text)) <= {"secrets.LOCALSTACK_AUTH_TOKEN"}
    (source,) = pipeline.var_sources
    assert (source.type, source.config.audience, source.config.subject_scope) == ("idtoken", ["sts.amazonaws.com"], "job")


def test_what_others_write_is_never_part_of_a_script(workflow: dict[str, Any]) -> None:
    for job in workflow["jobs"].values():
        assert not [step["run"] for step in job["steps"] if "${{" in step.get("run", "")]


def test_localstack_is_a_service_where_the_steps_expect_it(workflow: dict[str, Any]) -> None:
    check = workflow["jobs"]["check"]
    service = check["services"]["localstack"]
    assert service["image"].endswith(f"|| 'localstack/localstack:{OLDEST}' }}}}")
    assert [f"http://127.0.0.1:{port.partition(':')[0]}" for port in service["ports"]] == [check["env"][ENDPOINT_VARIABLE]]
    # No deploy has it, nor its token.
    assert [name for name, job in workflow["jobs"].items() if "services" in job] == ["check"]


def test_a_change_that_is_only_proposed_is_checked_and_not_deployed(workflow: dict[str, Any]) -> None:
    assert "pull_request_target" not in workflow["on"]
    for name, job in workflow["jobs"].items():
        assert job.get("if") == ("github.event_name == 'push'" if name.startswith("deploy") else None)


def test_two_deploys_of_an_environment_never_run_at_once_and_none_is_broken_off(pipeline: Pipeline, workflow: dict[str, Any]) -> None:
    jobs = {job.name: job for job in pipeline.jobs}
    for target in TARGETS:
        name = f"deploy-{target.environment}"
        assert workflow["jobs"][name]["concurrency"] == {"group": f"penstock-deploy-{target.environment}", "cancel-in-progress": False}
        assert jobs[name].serial
        assert not jobs[name].interruptible


def test_production_requires_approval(pipeline: Pipeline, workflow: dict[str, Any]) -> None:
    jobs = {job.name: job for job in pipeline.jobs}
    for target in TARGETS:
        name = f"deploy-{target.environment}"
        # GitHub asks the reviewers of the environment; in Concourse the job is started manually.
        assert workflow["jobs"][name]["environment"] == target.environment
        (get,) = jobs[name].gets()
        assert get.trigger is not target.approved


def test_the_variables_of_concourse_are_all_named() -> None:
    referenced = set(re.findall(r"\(\(([\w-]+)\)\)", CONCOURSE.read_text("utf-8")))
    assert referenced == set(VARIABLES)


def test_the_review_compares_with_the_commit_before_the_change(tmp_path: Path) -> None:
    """Runs the step itself, in a repository with one change, with a `penstock` that records its arguments and refuses the change."""
    (step,) = (step for step in CHECK if step.name == "review")
    (tmp_path / ".venv/bin").mkdir(parents=True)
    penstock = tmp_path / ".venv/bin/penstock"
    penstock.write_text('#!/bin/sh\necho "$@"\nexit 1\n')
    penstock.chmod(0o755)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PENSTOCK_ENVIRONMENT": "production"}
    environment |= {f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}

    def git(*words: str) -> str:
        command = ["git", "-C", str(tmp_path), *words]
        return subprocess.run(command, check=True, timeout=20, capture_output=True, text=True, env=environment).stdout.strip()

    git("init", "-q")
    for text in ("old", "new"):
        (tmp_path / "changed.yaml").write_text(f"{text}\n")
        git("add", "changed.yaml")
        git("commit", "-q", "-m", text)
    for base in ("HEAD^1", "0" * 40):
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", step.script],
            cwd=tmp_path,
            env={**environment, "PENSTOCK_BASE": base},
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        assert ran.returncode == 1
        assert ran.stdout.split() == ["review", git("rev-parse", "HEAD^1"), "--environment", "production", "-o", "markdown"]
        assert (tmp_path / ".penstock/review.md").read_text() == ran.stdout
