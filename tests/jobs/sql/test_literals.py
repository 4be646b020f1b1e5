"""SQL in Python apps: places of errors in the app, and what sizing counts, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.jobs.spec import app_module
from penstock.jobs.spec.app_sources import app_sources
from penstock.jobs.sql.literals import located
from penstock.sizing.errors import PenstockError

COUNTS = "SELECT page, count(*) AS n FROM clicks GROUP BY page, TUMBLE('1m')"


def write(folder: Path, text: str, name: str = "app.py") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def places(path: Path) -> list[str]:
    with pytest.raises(PenstockError) as error:
        app_module.read(path)
    return [f"{one.code} {str(one.at).removeprefix(str(path))}" for one in error.value.errors]


@pytest.mark.parametrize(
    ("call", "place"),
    [
        ('job.sql("SELECT n + 1 FROM clicks")', ":3:21"),
        ('é = job.sql(\n        """\n        SELECT n,\n          n + 1\n        FROM clicks""")', ":6:11"),
        ("job.sql(TEXT)", ":1:16"),
        # Written otherwise than it reads: the line of the call.
        ('job.sql("SELECT \\x6e + 1 FROM clicks")', ":3"),
        ('job.sql("SELECT n + 1 " "FROM clicks")', ":3"),
        ('job.sql("SELECT n FROM clicks; INSERT INTO out SELECT n FROM clicks")', ":3:14"),
        ('job.sql("CREATE VIEW a AS SELECT n FROM clicks")', ":3:14"),
        ('job.sql("")', ":3"),
    ],
)
def test_an_error_in_a_text_is_reported_with_its_line_and_column_in_the_app(tmp_path: Path, call: str, place: str) -> None:
    path = write(tmp_path, f'TEXT = "SELECT n + 1 FROM clicks"\ndef build(job):\n    {call}\n')
    assert places(path)[0] == f"SPEC-045 {place}"


def test_a_text_that_a_program_makes_has_the_line_of_its_call(tmp_path: Path) -> None:
    path = write(tmp_path, "def build(job):\n    job.sql('SELECT ' + 'x')\n")
    error = located("SELECT x\nFRM clicks", path, 2).refused(9, "FROM", "correct it")
    assert str(error.at) == f"{path}:2" and error.need == "line 2, column 1 of the SQL: FROM"
    assert not located("SELECT 1", tmp_path / "none.py", 2).verbatim


def test_blocks_of_sql_are_counted_with_those_of_python(tmp_path: Path) -> None:
    function = "CREATE FUNCTION f RETURNS INT AS 'rules.f'; CREATE CALL FUNCTION g RETURNS TABLE (x INT) AS 'rules.g'"
    path = write(
        tmp_path,
        f"""
from penstock import top

COUNTS = "{COUNTS}"


def build(jobs):
    top(jobs.sql(COUNTS), 3, by="n")
    jobs.sql("{function}; CREATE VIEW a AS CALL g OF clicks KEY n; MATCH a BY x WITHIN '1m' STEPS (s WHEN x = 1)")
    other.sql("not ours")
    jobs.sql(made())
""",
    )
    app = app_module.read(path)
    assert sorted(app.stateful_calls) == ["aggregate", "pattern", "top"]
    assert sorted(app.python_operators) == ["client", "keyed", "udf"]
    write(tmp_path, "import tables", "rules.py")
    write(tmp_path, "", "tables.py")
    assert sorted(app_sources("app", tmp_path)) == ["app", "rules", "tables"]
    write(tmp_path, f"{function}; CREATE SOURCE s (a INT); INSERT INTO out SELECT f(a) AS a FROM s", "app.sql")
    assert sorted(app_sources("app.sql", tmp_path)) == ["app.sql", "rules", "tables"]
