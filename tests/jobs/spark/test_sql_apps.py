"""Apps in SQL: errors of Spark or of a block are reported with their line, and several INSERTs are routes of one output."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.jobs.driver.sql_app import declare
from penstock.jobs.errors import BadDeclaration
from penstock.jobs.sql.errors import SqlRefused
from penstock.jobs.stream.streams import TIME, Stream

CLICKS = "CREATE SOURCE clicks (user STRING, n INT, tags ARRAY<STRING>);\n"
# Of the standard library: none of them is called.
FUNCTIONS = f"""{CLICKS}CREATE FUNCTION half RETURNS DOUBLE AS 'math.sqrt';
CREATE TABLE FUNCTION each RETURNS INT AS 'builtins.range';
CREATE AGGREGATE FUNCTION total RETURNS INT AS 'builtins.sum';
CREATE TABLE AGGREGATE FUNCTION greatest_two RETURNS INT AS 'builtins.sorted';
CREATE CALL FUNCTION asked RETURNS TABLE (answer INT) AS 'math.pow';
CREATE KEYED FUNCTION kept RETURNS TABLE (user STRING) AS 'math.pow';
"""
CALLED = "CREATE CALL FUNCTION f RETURNS TABLE (x INT)"


class Declared:
    """Replaces `penstock.jobs.job.Job`: sources with that schema and without rows, and the declared outputs."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.connections: dict[str, str] = {"bank": "http://127.0.0.1:9"}
        self.written: list[tuple[Stream, str | Mapping[str, str | None]]] = []
        self.side_outputs: dict[str, str] = {}

    def source(self, name: str, schema: str, *, record: str | None = None) -> Stream:
        if name == "unknown":
            raise BadDeclaration(path='job.source("unknown")', need="a source of the spec: clicks", fix="correct the name")
        rows = self.session.createDataFrame([], f"{schema}, {TIME} timestamp")
        return Stream(rows, timed=True)

    def table(self, name: str) -> Any:
        raise BadDeclaration(path=f'job.table("{name}")', need="a table of the spec: it has none", fix="correct the name")

    def write(self, stream: Stream, sinks: str | Mapping[str, str | None]) -> None:
        self.written.append((stream, sinks))

    def side_output(self, sink: str, tag: str) -> None:
        self.side_outputs[tag] = sink


def declared(session: SparkSession, folder: Path, text: str) -> Declared:
    job: Any = Declared(session)
    (folder / "app.sql").write_text(text, encoding="utf-8")
    declare(folder / "app.sql", job)
    assert isinstance(job, Declared)
    return job


@pytest.mark.parametrize(
    ("text", "line", "need"),
    [
        (f"{CLICKS}INSERT INTO out SELECT user\nFROM clicks\nWHERE usr = 'a'", 4, "usr"),
        (f"{CLICKS}INSERT INTO out SELECT user,\n upper(user, n, 3) AS x FROM clicks", 3, "upper"),
        (f"{CLICKS}INSERT INTO out SELECT user FROM clicks WHERE n > 1 extra words", 2, "words"),
        (f"{CLICKS}INSERT INTO out SELECT user, count(*) AS n FROM clicks", 2, "count(1)"),
        (f"{CLICKS}INSERT INTO out SELECT user FROM clicks\nWHERE count(*) > 1", 3, "an expression on a single row"),
        (f"{CLICKS}INSERT INTO out SELECT user, count(*) AS c FROM clicks GROUP BY user, ROWS(2)\nHAVING count(*) > 1", 3, "single row"),
        (f"{CLICKS}INSERT INTO out SELECT user, count(*) AS c FROM clicks GROUP BY user, ROWS(2)\nHAVING c", 3, "BOOLEAN"),
        (f"{CLICKS}INSERT INTO out SELECT user FROM clicks WHERE\nexplode(tags) = 'a'", 3, "one value per row"),
        (f"{CLICKS}INSERT INTO a SELECT * FROM clicks;\nINSERT INTO b SELECT * FROM clicks WHERE\nmax(n) = n", 4, "on a single row"),
        (f"{CLICKS}INSERT INTO out DIVERT clicks TO alerts WHEN\nsum(n) > 1 BECAUSE 'x'", 3, "on a single row"),
        (f"{CLICKS}INSERT INTO out DIVERT clicks TO alerts WHEN n > 1 BECAUSE\nmax(user)", 3, "max(user)"),
        (f"{CLICKS}INSERT INTO out TOP 1 OF clicks ORDER BY\nmax(n) IN TUMBLE('5m')", 3, "max(n)"),
        (f"{CLICKS}INSERT INTO out SELECT user, count(*) AS n FROM clicks GROUP BY user", 2, "a window or EMIT UPDATES"),
        (f"{CLICKS}INSERT INTO out SELECT usr, count(*) AS n FROM clicks GROUP BY usr, TUMBLE('5m')", 2, "usr"),
        (f"{CLICKS}INSERT INTO out SELECT user, count(*) AS n FROM clicks GROUP BY user, TUMBLE('five')", 2, "five"),
        (f"{CLICKS}INSERT INTO out SELECT user, window_end, n FROM clicks GROUP BY user, ROWS(5)", 2, ""),
        (f"{CLICKS}INSERT INTO out SELECT user, upper(user) AS user FROM clicks", 2, "duplicate: user"),
        (f"{CLICKS}INSERT INTO out SELECT user FROM clicks LATERAL VIEW explode(n) AS one", 2, "n"),
        (f"{CLICKS}INSERT INTO out DEDUPLICATE clicks BY usr WITHIN '5m'", 2, "usr"),
        (f"{CLICKS}INSERT INTO out TOP 0 OF clicks ORDER BY n IN TUMBLE('5m')", 2, "n = 0"),
        (f"{CLICKS}INSERT INTO out TOP 1 OF clicks ORDER BY n", 2, "specify a window"),
        (f"{CLICKS}INSERT INTO out MATCH clicks BY user WITHIN '1m' STEPS (a WHEN m > 1)", 2, "m"),
        (f"{CLICKS}INSERT INTO out DIVERT clicks TO alerts WHEN n BECAUSE m", 2, "m"),
        (f"{CLICKS}INSERT INTO out SELECT c.user FROM clicks AS c JOIN TABLE users ON c.user = users.name", 2, "a table of the spec"),
        (f"{FUNCTIONS}INSERT INTO out SELECT total(n) AS t FROM clicks", 8, "total alone in a SELECT with GROUP BY"),
        (f"{FUNCTIONS}INSERT INTO out SELECT user FROM clicks\nWHERE each(n) > 1", 9, "each in FROM"),
        (f"{FUNCTIONS}INSERT INTO out SELECT user, total(n) + 1 AS t FROM clicks GROUP BY user, TUMBLE('1m')", 8, "total alone"),
        (f"{FUNCTIONS}INSERT INTO out SELECT user, total() AS t FROM clicks GROUP BY user, TUMBLE('1m')", 8, "at least one argument"),
        (f"{FUNCTIONS}INSERT INTO out SELECT x FROM clicks LATERAL VIEW half(n) AS x", 8, "CREATE TABLE FUNCTION"),
        (f"{FUNCTIONS}INSERT INTO out CALL half OF clicks KEY n", 8, "CREATE CALL FUNCTION"),
        (f"{FUNCTIONS}INSERT INTO out PROCESS clicks BY user WITH asked", 8, "CREATE KEYED FUNCTION"),
        (f"{FUNCTIONS}INSERT INTO out CALL asked OF clicks KEY m", 8, "m"),
        (f"{CLICKS}{CALLED} CONNECTION 'shop' AS 'builtins.slice'; INSERT INTO o CALL f OF clicks KEY n", 2, "of the spec: bank"),
        (f"{CLICKS}{CALLED} AS 'builtins.slice'; INSERT INTO o CALL f OF clicks KEY n", 2, "a class that takes no arguments; TypeError"),
        (f"{FUNCTIONS}INSERT INTO out PROCESS clicks BY user AND clicks BY n WITH kept", 8, "each view once"),
        (f"{CLICKS}CREATE FUNCTION upper RETURNS INT AS 'math.sqrt'; INSERT INTO o SELECT n FROM clicks", 2, "no function of Spark"),
        (f"{CLICKS}CREATE FUNCTION f RETURNS THING AS 'math.sqrt'; INSERT INTO out SELECT n FROM clicks", 2, "THING"),
        (f"{CLICKS}CREATE FUNCTION f RETURNS INT AS\n'math.half'; INSERT INTO o SELECT n FROM clicks", 3, "a name that the module"),
        (f"{CLICKS}CREATE FUNCTION f RETURNS INT AS 'no_module.f'; INSERT INTO out SELECT n FROM clicks", 2, "ModuleNotFoundError"),
        (f"{CLICKS}CREATE FUNCTION f RETURNS INT AS 'math.pi'; INSERT INTO out SELECT n FROM clicks", 2, "a function"),
        (f"{CLICKS}CREATE FUNCTION f RETURNS INT AS 'sqrt'; INSERT INTO out SELECT n FROM clicks", 2, "a module and a name in it"),
        (f"{CLICKS}CREATE FUNCTION f AS 'math.sqrt'; INSERT INTO out SELECT n FROM clicks", 2, "RETURNS and the type"),
        ("CREATE SOURCE unknown (n INT);\nINSERT INTO out SELECT n FROM unknown", 1, "a source of the spec: clicks"),
    ],
)  # fmt: skip
def test_an_error_while_building_is_reported_with_its_line(session: SparkSession, tmp_path: Path, text: str, line: int, need: str) -> None:
    with pytest.raises(SqlRefused) as error:
        declared(session, tmp_path, text)
    assert error.value.at and error.value.at.line == line, error.value.render()
    assert need in error.value.need and "SQLSTATE" not in error.value.need, error.value.render()


def test_several_inserts_are_routes_of_one_output(session: SparkSession, tmp_path: Path) -> None:
    text = f"{CLICKS}CREATE VIEW big AS SELECT * FROM clicks WHERE n > 5; INSERT INTO a SELECT * FROM big WHERE n < 9;"
    job = declared(session, tmp_path, f"{text} INSERT INTO `b-c` SELECT * FROM big; SIDE OUTPUT errors; SIDE OUTPUT late FOR late")
    ((stream, routes),) = job.written
    assert routes == {"a": "n < 9", "b-c": None} and stream.fields == ["user", "n", "tags"]
    assert job.side_outputs == {"quarantined": "errors", "late": "late"}


def test_the_class_of_a_call_is_made_with_the_url_of_its_connection(session: SparkSession, tmp_path: Path) -> None:
    made = f"{CALLED} CAPACITY 2 TIMEOUT '1s' UNORDERED CONNECTION 'bank' AS 'urllib.request.Request' LANGUAGE PYTHON"
    job = declared(session, tmp_path, f"{CLICKS}{made};\nINSERT INTO out CALL f OF clicks KEY concat(user, n)")
    assert job.written[0][0].fields == ["user", "n", "tags", "x"]
