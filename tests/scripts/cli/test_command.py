"""The command itself: verbs, usage, errors and exit codes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel, field_serializer

from penstock.scripts.cli.command import VERBS, Verb, exit_code, main
from penstock.scripts.cli.output import wants_json
from penstock.sizing.errors import CheckFailed, DocumentError, Faults, Infeasible, PenstockError, RunFailed, ToolMissing

ROOT = Path(__file__).resolve().parents[3]
SPEC = "jobs/specs/user_credit.yaml"


def penstock(*words: str) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own."""
    command = [sys.executable, "-m", "penstock.scripts", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_help_lists_every_verb_with_what_it_does() -> None:
    done = penstock("--help")
    assert done.returncode == 0
    assert done.stderr == ""
    for name, verb in VERBS.items():
        assert f"  {name}" in done.stdout
        assert verb.help in done.stdout


def test_a_verb_has_help_of_its_own() -> None:
    done = penstock("size", "--help")
    assert done.returncode == 0
    for word in ("SPEC", "--app-path", "--output", "--explain"):
        assert word in done.stdout


def test_the_list_of_verbs_imports_no_verb() -> None:
    verbs = sorted(verb.module for verb in VERBS.values())
    code = f"import sys; from penstock.scripts.cli.command import main; main(['--help']); print([m for m in {verbs} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_version_is_said() -> None:
    done = penstock("--version")
    assert done.returncode == 0
    assert re.fullmatch(r"penstock [0-9]+\.[0-9]+\.[0-9]+\n", done.stdout)


@pytest.mark.parametrize(
    ("words", "given", "fix"),
    [
        ((), "no command", "penstock --help"),
        (("sise",), "command sise", "did you mean size?"),
        (("xyzzy",), "command xyzzy", "penstock --help"),
        (("--verbose",), "unrecognized arguments: --verbose", "penstock --help"),
        (("size",), "no SPEC", "penstock size --help"),
        (("size", SPEC, "--explian"), "unrecognized arguments: --explian", "penstock size --help"),
        (("size", SPEC, "-o", "xml"), "argument -o/--output: invalid choice: 'xml'", "penstock size --help"),
        (("size", SPEC, "--exp"), "unrecognized arguments: --exp", "penstock size --help"),
    ],
)
def test_wrong_usage_is_an_error_in_the_form_of_all_others(words: tuple[str, ...], given: str, fix: str) -> None:
    done = penstock(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error[USE-001]: invalid usage\n  at   {given}")
    assert done.stderr.endswith(f"  fix  {fix}\n")


@pytest.mark.parametrize("words", [("size", "-o", "json"), ("size", SPEC, "--output=json", "--nothing"), ("size", "none.yaml", "-ojson")])
def test_errors_are_json_on_standard_output_where_json_is_asked_for(words: tuple[str, ...]) -> None:
    done = penstock(*words)
    document = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (2, "")
    assert set(document) == {"schemaVersion", "errors"}
    assert set(document["errors"][0]) >= {"code", "file", "line", "column", "path", "given", "need", "fix"}


@pytest.mark.parametrize(
    ("words", "json_wanted"),
    [
        (("size", "-o", "json"), True),
        (("size", "--output", "json"), True),
        (("size", "-ojson"), True),
        (("size", "-o", "table"), False),
        (("size", "json"), False),
        (("size", "--", "-o", "json"), False),
        (("size", "-o"), False),
    ],
)
def test_json_is_recognised_in_a_wrong_command_line_too(words: tuple[str, ...], json_wanted: bool) -> None:
    assert wants_json(words) is json_wanted


class _Check(CheckFailed):
    code, title = "T-001", "check"


class _Document(DocumentError):
    code, title = "T-002", "document"


class _Infeasible(Infeasible):
    code, title = "T-003", "infeasible"


class _Tool(ToolMissing):
    code, title = "T-004", "tool"


class _Run(RunFailed):
    code, title = "T-005", "run"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (_Check(), 1),
        (_Document(), 2),
        (_Infeasible(), 3),
        (_Tool(), 4),
        (_Run(), 5),
        (Faults([_Infeasible(), _Infeasible()]), 3),
        (Faults([_Infeasible(), _Document()]), 2),
        (Faults([_Check(), _Tool(), _Run()]), 5),
    ],
)
def test_the_exit_code_is_that_of_the_gravest_fault(error: PenstockError, code: int) -> None:
    assert exit_code(error) == code


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as gone, (tmp_path / "stderr").open("w") as stderr:
        code = subprocess.call([sys.executable, "-m", "penstock.scripts", "size", SPEC], cwd=ROOT, stdout=gone, stderr=stderr, timeout=60)
    assert (code, (tmp_path / "stderr").read_text()) == (141, "")


def test_an_interrupt_ends_quietly_with_its_own_code(tmp_path: Path) -> None:
    fifo = tmp_path / "spec.yaml"
    os.mkfifo(fifo)
    command = [sys.executable, "-m", "penstock.scripts", "size", str(fifo)]
    with (
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
        # Opening the other end waits until the command reads the spec.
        fifo.open("w"),
    ):
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout, stderr) == (130, "", "interrupted\n")


def test_an_interrupt_while_a_document_is_written_is_one_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Pydantic raises another exception for what a serializer raises."""

    class Slow(BaseModel):
        seconds: int = 1

        @field_serializer("seconds")
        def _as_text(self, seconds: int) -> str:
            raise KeyboardInterrupt

    verb: Any = ModuleType("verb_that_is_interrupted")
    verb.add_arguments, verb.run = lambda _: None, lambda _: Slow().model_dump()
    monkeypatch.setitem(sys.modules, verb.__name__, verb)
    monkeypatch.setitem(VERBS, "slow", Verb(verb.__name__, "write a document"))
    assert (main(["slow"]), capsys.readouterr().err) == (130, "interrupted\n")


def test_a_name_the_terminal_can_not_show_does_not_end_the_command() -> None:
    environment: dict[str, Any] = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "penstock.scripts", "size", "Größe.yaml"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert (done.returncode, "SPEC-001" in done.stderr) == (2, True)


def test_main_gives_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["size", str(ROOT / SPEC), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["totals"]["executors"] == 2
    assert main(["--help"]) == 0


def test_a_verb_whose_packages_are_not_installed_says_what_is_missing() -> None:
    # A Python without this checkout's packages but for the two that `size` needs, as someone has who only sizes.
    blocked = "import sys; sys.modules.update({name: None for name in ('pyspark', 'boto3', 'confluent_kafka', 'pandas')});"
    call = f"{blocked} from penstock.scripts.cli.command import main; sys.exit(main(['up', 'no.yaml']))"
    ran = subprocess.run([sys.executable, "-c", call], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 4, ran.stderr
    assert "error[TOOL-023]" in ran.stderr
    assert "./scripts/setup" in ran.stderr
    assert 'pip install "penstock-kit[local]"' in ran.stderr
    assert "Traceback" not in ran.stderr
