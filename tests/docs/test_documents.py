"""The documents: links resolve, commands exist, outputs match, and examples run."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, get_args
from xml.etree import ElementTree

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from penstock.infra.environment import Environment
from penstock.infra.environment_file import FOLDER
from penstock.jobs.local.recording import Expectation, Record, Recorded, Recording
from penstock.scripts.cli.command import VERBS
from penstock.scripts.dev.error_reference import errors
from penstock.scripts.layout import ROOT
from penstock.sizing.catalog.catalog import shipped
from penstock.sizing.plan.alternatives import Alternative
from penstock.sizing.plan.together import Together
from penstock.sizing.planned import Plan
from tests.infra.environments import BARE
from tests.scripts.cli.called import Called, penstock

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), ROOT / "requirements/README.md"]
README, CONTRIBUTING, JOB_SPEC = ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "docs/job-spec.md"
SIZING, ENVIRONMENT, PLACEMENT = ROOT / "docs/sizing.md", ROOT / "docs/environment.md", ROOT / "docs/placement.md"
QUICKSTART, COMMANDS, JOBS = ROOT / "docs/quickstart.md", ROOT / "docs/commands.md", ROOT / "docs/jobs.md"
TUTORIALS = ROOT / "docs/tutorials"
FIRST_JOB, SIZE_BEFORE = TUTORIALS / "first-job.md", TUTORIALS / "size-before-a-rollout.md"
UPGRADE, SPOT_LOSS = TUTORIALS / "an-upgrade.md", TUTORIALS / "a-spot-loss.md"
README_LINES = 150
COMMAND = ".venv/bin/penstock"
# The whole of a run on a busy machine with two cores.
RUN_LIMIT_S = 400
# Verbs that plan and ask nothing outside of this machine; of `catalog` those actions that do not.
PLANNING = ("size ", "place ", "cost ", "lint ", "report ", "catalog list", "catalog show ")
CHEAP = (
    ".venv/bin/python -m penstock.scripts.dev.error_reference > docs/errors.md",
    ".venv/bin/python -m penstock.scripts.dev.lint_reference > docs/lint.md",
    ".venv/bin/python -m penstock.scripts.dev.api_reference > docs/api.md",
    ".venv/bin/python -m penstock.jobs.spec.schema > jobs/spec.schema.json",
    "./scripts/test --list",
)


def _name(value: object) -> str:
    return str(value.relative_to(ROOT)) if isinstance(value, Path) else str(value)


def _prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def _blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def _files(page: Path) -> dict[str, str]:
    """The files that a page shows: a line with the name in backquotes, then the fenced block."""
    shown = re.findall(r"^`([\w./]+)`\n```\w+\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return dict(shown)


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", _prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _commands(page: Path) -> list[str]:
    """The command lines that a page shows, in fenced blocks and in running text."""
    lines = [line.removeprefix("$ ") for block in _blocks(page, "sh") for line in block.splitlines()]
    lines += re.findall(r"`([^`\n]+)`", _prose(page))
    return list(dict.fromkeys(line for line in lines if line.startswith(("./scripts/", COMMAND, "penstock "))))


def _planning_commands() -> list[str]:
    """The commands in fenced blocks that plan something, of all the pages for users."""
    pages = (README, COMMANDS, SIZING, ENVIRONMENT, PLACEMENT, SIZE_BEFORE)
    lines = [line for page in pages for block in _blocks(page, "sh") for line in block.splitlines()]
    return list(dict.fromkeys(line for line in lines if line.removeprefix(f"{COMMAND} ").startswith(PLANNING)))


def _shown_outputs() -> list[tuple[str, str]]:
    """The commands that a page shows right before what they print, with that."""
    pattern = re.compile(rf"^```sh\n{re.escape(COMMAND)} ([^\n]+)\n```\n```text\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
    pages = (README, COMMANDS, SIZING, PLACEMENT, SIZE_BEFORE, SPOT_LOSS)
    return [(command, output) for page in pages for command, output in pattern.findall(page.read_text(encoding="utf-8"))]


def _run(command: list[str], cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a command from any folder; where it is a Python module, that of this checkout."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True, timeout=RUN_LIMIT_S, check=False)


def _penstock(*words: str, cwd: Path = ROOT) -> Called:
    return penstock(*words, cwd=cwd, environment=os.environ)


@cache
def _help(*command: str) -> str:
    shown = _penstock(*command, "--help") if command[0] in VERBS else _run([*command, "--help"], ROOT)
    assert shown.returncode == 0, shown.stderr
    return shown.stdout


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The spec of the example job of docs/jobs.md, with its files beside it, in a folder outside of the checkout."""
    folder = tmp_path / "a job of one's own"
    folder.mkdir()
    for name, text in _files(JOBS).items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "my_job.yaml"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that the pages' commands name: the files that the pages show, and those that they describe."""
    folder = tmp_path_factory.mktemp("desk")
    for page in (README, JOBS, SIZING, PLACEMENT, SIZE_BEFORE):
        for name, text in _files(page).items():
            (folder / name).write_text(text, encoding="utf-8")
    for name in ("jobs", "tests"):
        (folder / name).symlink_to(ROOT / name)
    production = (FOLDER / "production.yaml").read_text(encoding="utf-8")
    (folder / "prod.yaml").write_text(production, encoding="utf-8")
    executors = "        expireAfter: 720h\n"
    assert production.count(executors) == 1
    limits = '        limits: {cpu: "8", memory: 8000Gi}\n'
    (folder / "small.yaml").write_text(production.replace(executors, limits + executors), encoding="utf-8")
    (folder / "catalog.us-east-1.json").write_text(shipped().model_dump_json(), encoding="utf-8")
    return folder


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_relative_link_leads_to_something(page: Path) -> None:
    dead = []
    for link in re.findall(r"\]\(([^)\s]+)\)", _prose(page)):
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            dead.append(link)
    assert dead == []


@pytest.mark.parametrize(
    "page", [README, QUICKSTART, COMMANDS, JOBS, CONTRIBUTING, SIZING, ENVIRONMENT, PLACEMENT, *sorted(TUTORIALS.glob("*.md"))], ids=_name
)
def test_every_command_shown_exists_with_its_options(page: Path) -> None:
    commands = _commands(page)
    assert commands
    for line in commands:
        words = shlex.split(line)
        program, arguments = words[0], words[1 : words.index("--")] if "--" in words else words[1:]
        if program.startswith("./scripts/"):
            assert os.access(ROOT / program, os.X_OK), line
            # These set up before they hand their options on; what they hand them to can say them at once.
            module = {"./scripts/test": "tiers", "./scripts/chaos": "chaos"}.get(program)
            shown = _module_help(module) if module else _help(str(ROOT / program))
        elif not arguments or arguments[0].startswith("-"):
            shown = _penstock("--help").stdout
        else:
            assert arguments[0] in VERBS, line
            shown = _help(*(word for word in arguments[: 2 if arguments[0] in ("catalog", "savepoint", "upgrade") else 1]))
        unknown = [word for word in arguments if word.startswith("-") and not re.search(rf"(?<![\w-]){word}(?![\w-])", shown)]
        assert unknown == [], line


@cache
def _tier_list() -> str:
    return _run([sys.executable, "-m", "penstock.scripts.dev.tiers", "--list"], ROOT).stdout


@cache
def _module_help(module: str) -> str:
    return _run([sys.executable, "-m", f"penstock.scripts.dev.{module}", "--help"], ROOT).stdout


@pytest.mark.parametrize("page", [README, QUICKSTART, COMMANDS, CONTRIBUTING], ids=_name)
def test_every_file_of_the_checkout_that_a_command_names_exists(page: Path) -> None:
    named = {
        word for line in _commands(page) for word in shlex.split(line) if word.startswith(("jobs/", "infra/", "requirements/", "tests/"))
    }
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("line", CHEAP)
def test_a_cheap_command_of_contributing_does_what_it_says(line: str) -> None:
    assert line in CONTRIBUTING.read_text(encoding="utf-8").splitlines(), "the page shows it in this very form"
    command, _, file = line.partition(" > ")
    command = command.replace(".venv/bin/python", shlex.quote(sys.executable))
    ran = _run(["bash", "-c", command], ROOT)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == ((ROOT / file).read_text(encoding="utf-8") if file else _tier_list())


@pytest.mark.parametrize("line", _planning_commands())
def test_a_command_that_plans_does_what_the_page_says(line: str, desk: Path) -> None:
    ran = _penstock(*shlex.split(line.removeprefix(f"{COMMAND} ")), cwd=desk)
    assert ran.returncode == (3 if "small.yaml" in line or "four.yaml" in line else 0), ran.stderr
    assert ran.stdout


@pytest.mark.parametrize(("command", "shown"), _shown_outputs(), ids=[command for command, _ in _shown_outputs()])
def test_what_a_page_shows_of_a_command_is_what_it_prints(command: str, shown: str, desk: Path) -> None:
    ran = _penstock(*shlex.split(command), cwd=desk)
    printed = [*ran.stdout.splitlines(), *ran.stderr.splitlines()]
    assert [line for line in shown.splitlines() if line not in printed] == []


def test_every_tier_is_documented() -> None:
    table = re.search(r"<!-- tier-times -->\n(.*?)<!-- /tier-times -->", CONTRIBUTING.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert table
    listed = dict(line.split(maxsplit=1) for line in _tier_list().splitlines())
    rows = dict(re.findall(r"^\| (\w+) \| (.+?) \|", table[1], flags=re.MULTILINE))
    assert {tier: what.removesuffix(" (by default)") for tier, what in listed.items()} == {k: v for k, v in rows.items() if k != "tier"}


def test_every_field_of_the_spec_is_documented() -> None:
    schema = json.loads((ROOT / "jobs/spec.schema.json").read_text(encoding="utf-8"))
    models = [schema, *schema["$defs"].values()]
    fields = {name for model in models for name in model.get("properties", {})}
    assert {"apiVersion", "outOfOrderness", "bucketBy"} <= fields
    rows = set(re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", JOB_SPEC.read_text(encoding="utf-8"), flags=re.MULTILINE))
    documented = {name for row in rows for name in re.findall(r"\w+", row)}
    assert fields - documented == set()


def test_every_choice_of_the_spec_is_documented() -> None:
    schema = json.loads((ROOT / "jobs/spec.schema.json").read_text(encoding="utf-8"))
    text = JOB_SPEC.read_text(encoding="utf-8")
    assert [choice for choice in sorted(_choices(schema)) if f"`{choice}`" not in text] == []


def _parts(kind: type[BaseModel], path: str) -> dict[str, type[BaseModel]]:
    """Path -> model, of a model and all below it; a model used in several places is listed at the first."""
    parts: dict[str, type[BaseModel]] = {path: kind}
    for field in kind.model_fields.values():
        for below in _models(field.annotation):
            if below not in parts.values():
                deeper = _parts(below, f"{path}.{field.alias}".removeprefix("."))
                parts |= {where: model for where, model in deeper.items() if model not in parts.values()}
    return parts


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models(argument)]


def _tables(page: Path) -> dict[str, dict[str, str]]:
    """Heading -> field -> default, of each section's table."""
    sections = re.split(r"^#+ ", _prose(page), flags=re.MULTILINE)[1:]
    rows = {section.splitlines()[0]: re.findall(r"^\| `(\w+)` \|[^|]+\| ([^|]+) \|", section, flags=re.MULTILINE) for section in sections}
    return {heading: dict(fields) for heading, fields in rows.items() if fields}


def test_exactly_the_fields_of_an_environment_are_documented() -> None:
    shown = _tables(ENVIRONMENT)
    parts = {path or "The document": model for path, model in _parts(Environment, "").items()}
    fields = {path: {field.alias for field in model.model_fields.values()} for path, model in parts.items()}
    assert {path: set(rows) for path, rows in shown.items()} == fields
    required = {(path, field.alias) for path, model in parts.items() for field in model.model_fields.values() if field.is_required()}
    assert {(path, name) for path, rows in shown.items() for name, default in rows.items() if default == "required"} == required


@pytest.mark.parametrize("model", list(_parts(Environment, "").values()), ids=lambda model: model.__name__)
def test_every_choice_of_an_environment_is_documented(model: type[BaseModel]) -> None:
    text = ENVIRONMENT.read_text(encoding="utf-8")
    assert [choice for choice in sorted(_choices(model.model_json_schema(by_alias=True))) if f"`{choice}`" not in text] == []


def test_every_field_of_a_plan_is_documented() -> None:
    schemas = [model.model_json_schema(by_alias=True, mode="serialization") for model in (Plan, Together, Alternative)]
    models = [model for schema in schemas for model in (schema, *schema["$defs"].values())]
    fields = {name for model in models for name in model.get("properties", {})}
    assert {"launchTypes", "recoveryS", "priceDate"} <= fields
    text = SIZING.read_text(encoding="utf-8")
    named = {word for code in re.findall(r"`([^`\n]+)`", text[text.index("## The JSON") :]) for word in re.findall(r"\w+", code)}
    assert fields - named == set()


def _choices(part: Any) -> set[str]:
    if isinstance(part, list):
        return {choice for item in part for choice in _choices(item)}
    if not isinstance(part, dict):
        return set()
    own = {*part.get("enum", []), *([part["const"]] if "const" in part else [])}
    return {choice for choice in own if isinstance(choice, str)} | {choice for item in part.values() for choice in _choices(item)}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_error_code_that_is_named_is_one(page: Path) -> None:
    known = {kind.code for kinds in errors().values() for kind in kinds}
    prefixes = "|".join(sorted({code.split("-")[0] for code in known}))
    named = set(re.findall(rf"\b(?:{prefixes})-[0-9]{{3}}\b", page.read_text(encoding="utf-8")))
    assert named - known == set()


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_fence_that_is_opened_is_closed(page: Path) -> None:
    assert len(re.findall(r"^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE)) % 2 == 0


@pytest.mark.parametrize("image", sorted((ROOT / "docs").rglob("*.svg")), ids=_name)
def test_a_picture_is_well_formed_and_self_contained(image: Path) -> None:
    text = image.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.find("{http://www.w3.org/2000/svg}title") is not None
    assert not re.search(r"href=\"https?:|@import|<script|<image", text)
    classes = set(re.findall(r'class="(\w+)"', text))
    assert "prefers-color-scheme: dark" in text
    assert [name for name in sorted(classes) if text.count(f".{name} {{") < 1] == []


def test_every_decision_has_its_sections_and_is_listed() -> None:
    folder = ROOT / "docs/decisions"
    pages = sorted(path for path in folder.glob("*.md") if path.name != "README.md")
    assert [int(path.name[:4]) for path in pages] == list(range(1, len(pages) + 1))
    for path in pages:
        headings = re.findall(r"^## (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert headings == ["Context", "Decision", "Consequences", "Tests"], path.name
        assert f"]({path.name})" in (folder / "README.md").read_text(encoding="utf-8")


def test_the_readme_can_be_read_in_a_minute() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= README_LINES


def test_every_verb_is_documented() -> None:
    table = COMMANDS.read_text(encoding="utf-8").split("## Plan")[0]
    assert [verb for verb in VERBS if f"`{verb}`" not in table] == []


def test_the_example_plan_of_the_sizing_page_is_the_one_that_size_gives() -> None:
    shown = _blocks(SIZING, "text")
    plan = _penstock("size", "jobs/specs/user_credit.yaml").stdout
    assert plan in shown
    explained = _penstock("size", "jobs/specs/user_credit.yaml", "--explain").stdout
    (lines,) = [block for block in shown if block.startswith("totals.executors")]
    assert [line for line in lines.splitlines() if line not in explained.splitlines()] == []


def _transcript() -> str:
    page = QUICKSTART.read_text(encoding="utf-8")
    marked = re.search(r"<!-- transcript -->\n```text\n(.*?)```\n<!-- /transcript -->", page, flags=re.DOTALL)
    assert marked
    return marked[1]


def test_the_transcript_has_both_jobs_and_their_verdicts() -> None:
    transcript = _transcript()
    assert re.findall(r"^job (\S+)$", transcript, flags=re.MULTILINE) == ["user-credit", "flights"]
    assert len(re.findall(r"^  verdict +correct: ", transcript, flags=re.MULTILINE)) == 2
    assert "/tmp/" not in transcript
    for spec in ("jobs/specs/user_credit.yaml", "jobs/specs/flights.yaml"):
        # On one machine the plan ends with its pods.
        assert _penstock("size", spec, "--environment", BARE).stdout in transcript


def test_what_the_readme_shows_of_a_run_is_in_the_transcript() -> None:
    (shown,) = [block for block in _blocks(README, "text") if "  verdict" in block]
    assert [line for line in shown.splitlines() if line not in _transcript().splitlines()] == []


def test_the_repository_of_the_tutorials_has_what_they_show_and_change(tmp_path: Path) -> None:
    made = _penstock("init", "page-stats", "--yes", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    repository = tmp_path / "page-stats"
    app = (repository / "page_stats/page_views.py").read_text(encoding="utf-8")
    shown, changed = _blocks(FIRST_JOB, "python")
    assert shown in app
    # Each line that a tutorial takes away is one of the app's, or what the change before has made of one.
    for block in _blocks(UPGRADE, "diff"):
        removed, added = (line[1:] for line in block.splitlines())
        assert app.count(removed) == 1
        app = app.replace(removed, added)
        compile(app, "page_views.py", "exec")
    assert changed.strip() in app
    sized = _penstock("size", "specs/page_views.yaml", "-e", "dev", "--no-check", cwd=repository)
    (output,) = _blocks(FIRST_JOB, "text")
    assert [line for line in output.splitlines() if line not in sized.stdout.splitlines()] == []


def test_the_example_job_is_complete_and_valid(example: Path) -> None:
    assert set(_files(JOBS)) == {"my_job.py", "my_job.yaml", "events.jsonl"}
    schema = json.loads((ROOT / "jobs/spec.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator(schema).validate(yaml.safe_load(example.read_text(encoding="utf-8")))
    compile((example.parent / "my_job.py").read_text(encoding="utf-8"), "my_job.py", "exec")
    for line in (example.parent / "events.jsonl").read_text(encoding="utf-8").splitlines():
        json.loads(line)


def test_the_example_job_is_sized(example: Path) -> None:
    sized = _penstock("size", "my_job.yaml", "-o", "json", cwd=example.parent)
    assert sized.returncode == 0, sized.stderr
    plan = json.loads(sized.stdout)
    assert (plan["totals"]["executors"], plan["totals"]["pods"]) == (1, 2)
    assert plan["kafka"]["topics"] == {"clicks": 2, "my-job-errors": 1, "my-job-late": 1}


def test_the_errors_shown_are_those_of_the_example_job_with_slips(example: Path) -> None:
    text = example.read_text(encoding="utf-8")
    for right, wrong in (("outOfOrderness", "outOfOrdernes"), ("parallelism: 2", "parallelism: 0"), ("memory: 4g", "memory: 4Gib")):
        text = text.replace(right, wrong)
    (example.parent / "bad.yaml").write_text(text, encoding="utf-8")
    refused = _penstock("size", "bad.yaml", cwd=example.parent)
    assert refused.returncode == 2
    assert refused.stderr in _blocks(JOBS, "text")


def _checks() -> dict[str, Any]:
    """The names of the module that the page of the job spec shows."""
    names: dict[str, Any] = {}
    exec(compile(_files(JOB_SPEC)["my_checks.py"], "my_checks.py", "exec"), names)
    return names


def test_the_generator_and_the_expectation_of_the_job_specs_page_fit_each_other() -> None:
    names = _checks()
    made = list(names["clicks"](2))
    values = [item.value if isinstance(item, Record) else item if isinstance(item, bytes) else json.dumps(item).encode() for item in made]
    records = [Recorded(partition=0, offset=offset, key=None, value=value, flush=False) for offset, value in enumerate(values)]
    expected: Expectation = names["expect"](Recording({"clicks": records}, {"clicks": 1}, [], {"clicks": {0: 0}}))
    assert (len(made), expected.rows, expected.quarantined, expected.late) == (1_002, 666, 2, 0)
    assert isinstance(expected.exact, Counter) and expected.exact.total() == 666


def _processes_of(folder: Path) -> list[str]:
    """Command lines of the processes that have a folder in their environment."""
    commands = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (process / "environ").read_bytes():
                commands.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError:
            continue
    return commands


@pytest.mark.emulated
def test_the_example_job_runs_as_its_page_says_and_leaves_nothing(example: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    ran = _run([sys.executable, "-P", "-m", "penstock.scripts", "up", str(example)], tmp_path, TMPDIR=str(temporary))
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"^  verdict +correct: rows in = out \+ quarantined \+ late \+ filtered$", ran.stderr, flags=re.MULTILINE)
    assert re.search(r"^  in +5 records", ran.stderr, flags=re.MULTILINE)
    assert "my-job: 1 executor x 2 slots" in ran.stdout
    assert re.search(r"^  out +2 rows in \d files?, \d+ bytes: s3a://penstock-local-output/my-job/$", ran.stderr, flags=re.MULTILINE)
    assert "2 in topic my-job-errors" in ran.stderr
    assert re.search(r'1 x at is not ISO-8601 .*, for example clicks-[01]-\d: \{"user": "u4"', ran.stderr)
    assert re.search(r"stack checkpoints: \d+ created", ran.stderr)
    assert "0 in topic my-job-late" in ran.stderr
    assert "1 filtered" in ran.stderr
    assert list(temporary.iterdir()) == []
    # Keepers end with the command; the kernel may take a moment to bury what they have ended.
    until_s = time.monotonic() + 60
    while left := _processes_of(temporary):
        assert time.monotonic() < until_s, f"left behind: {left}"
