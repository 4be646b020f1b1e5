"""The app's module, read without importing it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from penstock.jobs.spec.app_module import MAX_BYTES, AppModule, find, read
from penstock.sizing.errors import PenstockError


def read_text(folder: Path, text: str | bytes) -> AppModule:
    path = folder / "app.py"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read(path)


def fault(folder: Path, text: str | bytes) -> PenstockError:
    with pytest.raises(PenstockError) as error:
        read_text(folder, text)
    (result,) = error.value.errors
    return result


@pytest.mark.parametrize("text", ["PARALLELISM = 91\n", "PARALLELISM: int = 91\n", "from typing import Final\nPARALLELISM: Final = 9_1\n"])
def test_a_parallelism_is_read_as_a_literal(tmp_path: Path, text: str) -> None:
    module = read_text(tmp_path, text)
    assert (module.parallelism, module.parallelism_line) == (91, text.count("\n"))


@pytest.mark.parametrize(
    ("text", "count", "names"),
    [
        ("OPERATORS = 3\n", 3, ()),
        ('OPERATORS = ("read", "join")\n', None, ("read", "join")),
        ('OPERATORS: list[str] = ["read"]\n', None, ("read",)),
        ("", None, ()),
    ],
)
def test_operators_are_a_number_or_names(tmp_path: Path, text: str, count: int | None, names: tuple[str, ...]) -> None:
    module = read_text(tmp_path, text)
    assert (module.operators, module.operator_names) == (count, names)


@pytest.mark.parametrize(
    "value", ["0", "-1", "True", "91.0", '"91"', "90 + 1", "int(91)", "None", "40_000", "N", "(91,)", "0x" + "F" * 5000]
)
def test_a_parallelism_that_is_not_a_literal_in_range_is_an_error_with_its_line(tmp_path: Path, value: str) -> None:
    error = fault(tmp_path, f"N = 5\nPARALLELISM = {value}\n")
    assert (error.code, error.path, str(error.at)) == ("SPEC-010", "PARALLELISM", f"{tmp_path / 'app.py'}:2")
    assert error.render()


@pytest.mark.parametrize(
    "value", ["0", "()", "[]", '("a", 1)', '("a", "a")', '("a", "")', '{"a"}', '"abc"', '["a"] * 3', "True", "range(3)"]
)
def test_operators_that_are_no_literals_are_an_error_with_their_line(tmp_path: Path, value: str) -> None:
    error = fault(tmp_path, f"OPERATORS = {value}\n")
    assert (error.code, error.path, error.at and error.at.line) == ("SPEC-010", "OPERATORS", 1)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("import os\nif os.name:\n    PARALLELISM = 91\n", 3),
        ("PARALLELISM = 90\nPARALLELISM += 1\n", 2),
        ("PARALLELISM = 90\nPARALLELISM = 91\n", 2),
        ("from settings import PARALLELISM\n", 1),
        ("import settings as PARALLELISM\n", 1),
        ("PARALLELISM, X = 91, 1\n", 1),
        ("X = PARALLELISM = 91\n", 1),
        ("PARALLELISM: int\n", 1),
        ("for PARALLELISM in range(9):\n    pass\n", 1),
        ("print(PARALLELISM := 91)\n", 1),
        ("PARALLELISM = 91\ndel PARALLELISM\n", 2),
        ("def PARALLELISM():\n    pass\n", 1),
        ("class PARALLELISM:\n    pass\n", 1),
        ("PARALLELISM = 1\ndef f():\n    global PARALLELISM\n    PARALLELISM = 91\n", 3),
        ("try:\n    pass\nexcept OSError as PARALLELISM:\n    pass\n", 3),
        ("match 1:\n    case PARALLELISM:\n        pass\n", 2),
        ("with open('x') as PARALLELISM:\n    pass\n", 1),
    ],
)
def test_whatever_else_sets_a_parallelism_is_an_error_with_its_line(tmp_path: Path, text: str, line: int) -> None:
    error = fault(tmp_path, text)
    assert (error.code, error.at and error.at.line) == ("SPEC-010", line)


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    PARALLELISM = 5\n",
        "class A:\n    PARALLELISM = 5\n",
        "x = [PARALLELISM for PARALLELISM in ()]\n",
        "x = lambda PARALLELISM: PARALLELISM\n",
        "x = {'PARALLELISM': 5}\nx.PARALLELISM = 5\n",
    ],
)
def test_a_name_of_another_scope_is_another_name(tmp_path: Path, text: str) -> None:
    assert read_text(tmp_path, text).parallelism is None


def test_both_faults_come_at_once(tmp_path: Path) -> None:
    with pytest.raises(PenstockError) as error:
        read_text(tmp_path, "PARALLELISM = 0\nOPERATORS = 0\n")
    assert [one.path for one in error.value.errors] == ["PARALLELISM", "OPERATORS"]


def test_calls_of_stateful_blocks_are_counted(tmp_path: Path) -> None:
    text = "from penstock.jobs.blocks import joins\ndef build(job):\n    joins.interval_join(interval_join(1, 2), 3)\n"
    assert read_text(tmp_path, text).stateful_calls == ("interval_join", "interval_join")


def test_a_block_is_counted_under_any_name_and_what_is_only_called_like_one_is_not(tmp_path: Path) -> None:
    text = """\
import psycopg, penstock.jobs.blocks.joins
from penstock.jobs.blocks.keyed.process import process as each
from penstock.jobs.blocks import windows
from elsewhere import pattern


def connect(url): ...


def build(job):
    each(penstock.jobs.blocks.joins.interval_join(job.source("a"), 1), 2)
    windows.salted(3)
    psycopg.connect(connect(pattern(job.process())))
"""
    module = read_text(tmp_path, text)
    assert sorted(module.stateful_calls) == ["interval_join", "process", "salted"]
    assert sorted(module.stateful_operators) == ["join", "other", "other", "other"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"x = 1\ndef broken(:\n", 2),
        (b"x = 1\ny = '\xff'\n", 2),
        (b"x = 1\x00\n", 1),
        (b"x = " + b"(" * 300 + b")" * 300, 1),
        (b"x = " + b"-" * 200_000 + b"1", 1),
        (b"x = " + b"1+" * 200_000 + b"1", 1),
    ],
    ids=["syntax", "bytes", "null", "brackets", "signs", "sums"],
)
def test_invalid_python_is_an_error_with_its_line(tmp_path: Path, text: bytes, line: int) -> None:
    error = fault(tmp_path, text)
    assert error.code == "SPEC-012"
    assert error.at is not None
    assert error.at.line is not None
    assert error.at.line >= 1
    assert line in (error.at.line, 1, 2)


def test_a_module_beyond_the_limit_is_rejected(tmp_path: Path) -> None:
    assert fault(tmp_path, b"#" * (MAX_BYTES + 1)).code == "SPEC-012"


def test_a_module_is_read_and_not_run(tmp_path: Path) -> None:
    read_text(tmp_path, f"import pathlib\npathlib.Path({str(tmp_path / 'ran')!r}).touch()\nPARALLELISM = 3\n")
    assert not (tmp_path / "ran").exists()
    assert "app" not in sys.modules


def test_an_invalid_escape_causes_no_warning(tmp_path: Path) -> None:
    assert read_text(tmp_path, 'x = "\\d"\nPARALLELISM = 2\n').parallelism == 2


def make(root: Path, name: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    return path


def test_an_app_is_a_module_or_a_package(tmp_path: Path) -> None:
    module, package = make(tmp_path, "shop/clicks.py"), make(tmp_path, "shop/orders/__init__.py")
    assert find("shop.clicks", tmp_path) == module
    assert find("shop.orders", tmp_path) == package


def test_beside_the_spec_comes_first_and_then_the_app_path_in_its_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, one, two, here = (tmp_path / name for name in ("spec", "one", "two", "here"))
    for folder in (spec, one, two, here):
        folder.mkdir()
    monkeypatch.chdir(here)
    expected = [make(folder, "clicks.py") for folder in (spec, one, two, here)]
    for path in expected:
        assert find("clicks", spec, [one, two]) == (path if path.parent != here else Path.cwd() / "clicks.py")
        path.unlink()


def test_the_jobs_of_this_repo_are_found_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find("penstock.jobs.apps.user_credit", tmp_path).name == "user_credit.py"


def test_an_app_that_is_nowhere_names_the_places_and_what_is_close(tmp_path: Path) -> None:
    make(tmp_path, "shop/clicks.py")
    with pytest.raises(PenstockError) as error:
        find("shop.cliks", tmp_path, [tmp_path / "more"])
    assert error.value.code == "SPEC-009"
    assert str(tmp_path) in error.value.need
    assert str(tmp_path / "more") in error.value.need
    assert error.value.fix == "did you mean shop.clicks?"


def test_a_slip_in_a_folder_is_close_too(tmp_path: Path) -> None:
    make(tmp_path, "shop/clicks.py")
    with pytest.raises(PenstockError) as error:
        find("shp.clicks", tmp_path)
    assert error.value.fix == "did you mean shop.clicks?"


def test_the_error_of_an_unknown_app_shows_how_to_add_its_folder(tmp_path: Path) -> None:
    with pytest.raises(PenstockError) as error:
        find("nowhere.at_all", tmp_path)
    assert "--app-path" in error.value.fix


@pytest.mark.parametrize(
    ("text", "outputs"),
    [
        ("", 1),
        ("def build(job):\n    job.write(a, 'out')\n", 1),
        ("def build(the_job):\n    the_job.write(a, 'out')\n    file.write('x')\n    the_job.write(b, {'other': None})\n", 2),
        ("def both(job):\n    job.write(b, 'other')\n\ndef build(job):\n    job.write(a, 'out')\n    both(job)\n", 2),
    ],
)
def test_each_write_of_the_job_is_a_query(tmp_path: Path, text: str, outputs: int) -> None:
    assert read_text(tmp_path, text).outputs == outputs
