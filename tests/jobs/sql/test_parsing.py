"""Apps in SQL as parsed by sizing: statements, and invalid statements with their line; without Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.jobs.spec import app_module
from penstock.jobs.spec.errors import AppNotFound
from penstock.jobs.sql.names import outputs
from penstock.jobs.sql.parsing import parse, read
from penstock.jobs.sql.statements import CreateSource, CreateView, Deduplicate, Insert, Match, Select, SideOutput, Statement, Top, Union
from penstock.jobs.sql.tokens import MAX_BYTES, Script
from penstock.sizing.errors import PenstockError

CLICKS = "CREATE SOURCE clicks (user STRING NOT NULL, n INT);\n"
PRICES = "CREATE SOURCE prices (page STRING);\n"


def statements(text: str) -> list[Statement]:
    return parse(Script(Path("app.sql"), text))[1]


def select(text: str) -> Select:
    """The only view of a text that also creates `clicks` and `prices`."""
    statement = statements(f"{CLICKS}{PRICES if 'prices' in text else ''}INSERT INTO out {text}")[-1]
    assert isinstance(statement, Insert) and isinstance(statement.query, Select)
    return statement.query


def faults(text: str) -> list[PenstockError]:
    with pytest.raises(PenstockError) as error:
        statements(text)
    return list(error.value.errors)


def fault(text: str) -> PenstockError:
    (error,) = faults(text)
    assert error.code == "SPEC-045" and error.render()
    return error


def test_a_whole_app_is_read() -> None:
    source, view, insert, side = statements(
        """-- what a visitor does; all of it
        CREATE SOURCE `page-views` (user STRING NOT NULL, paid DECIMAL(10, 2)) RECORD AS rec;
        create view best as top 3 of `page-views` per user order by paid desc in tumble('5m' offset '1m') emit updates;
        INSERT INTO out SELECT * FROM best WHERE user <> 'a;b' /* not a ; */ AND user <> 'it''s';
        SIDE OUTPUT errors
        """
    )
    assert isinstance(source, CreateSource) and (source.name.text, source.record, source.name.line) == ("page-views", "rec", 2)
    assert source.schema.text == "user STRING NOT NULL, paid DECIMAL(10, 2)"
    assert isinstance(view, CreateView) and isinstance(view.query, Top)
    assert (view.query.n, view.query.keys, view.query.by[0].order, view.query.emit) == (3, ("user",), "desc", "updates")
    assert view.query.window and (view.query.window.kind, view.query.window.size, view.query.window.offset) == ("tumble", "5m", "1m")
    assert isinstance(insert, Insert) and isinstance(insert.query, Select) and insert.query.where
    assert insert.query.where.text == "user <> 'a;b' /* not a ; */ AND user <> 'it''s'"
    assert side == SideOutput(side.sink, "quarantined") if isinstance(side, SideOutput) else False


def test_columns_have_the_names_that_are_written_or_follow() -> None:
    query = select(
        "SELECT user, c.n, `n` AS m, upper(user) AS `big`, CASE WHEN n > 1 THEN 'from, a' END AS z, trim(BOTH FROM n) AS y FROM clicks AS c"
    )
    assert [item.name for item in query.items] == ["user", "n", "m", "big", "z", "y"]
    assert [item.expression.text for item in query.items][-2:] == ["CASE WHEN n > 1 THEN 'from, a' END", "trim(BOTH FROM n)"]


@pytest.mark.parametrize(
    ("join", "kind", "how"),
    [
        ("JOIN prices ON clicks.user = prices.page WITHIN '-1m' AND '1m'", "interval", "inner"),
        ("FULL OUTER JOIN prices ON prices.page = clicks.user IN SESSION('1m')", "window", "full"),
        ("LEFT JOIN VERSIONS OF prices ON clicks.user = prices.page", "temporal", "left"),
        ("INNER JOIN BROADCAST prices ON clicks.n > prices.page AND clicks.user IN ('a', 'b')", "broadcast", "inner"),
        ("LEFT OUTER JOIN TABLE users AS prices ON clicks.user = prices.name", "lookup", "left"),
        ("JOIN prices UNIQUE (page) ON clicks.user = prices.page KEPT '12h' EMIT CURRENT", "regular", "inner"),
    ],
)
def test_each_join_is_identified_by_how_long_its_rows_are_kept(join: str, kind: str, how: str) -> None:
    text = f"SELECT user FROM clicks {join} WHERE n > 0"
    statement = statements(f"{CLICKS}{PRICES if kind != 'lookup' else ''}INSERT INTO out {text}")[-1]
    assert isinstance(statement, Insert) and isinstance(statement.query, Select) and statement.query.join and statement.query.where
    assert (statement.query.join.kind, statement.query.join.how, statement.query.where.text) == (kind, how, "n > 0")
    keys = {"broadcast": (), "lookup": (("user", "name"),)}
    assert statement.query.join.keys == keys.get(kind, (("user", "page"),))


def test_blocks_are_counted_as_in_an_app_in_python(tmp_path: Path) -> None:
    path = tmp_path / "app.sql"
    path.write_text(
        f"""{CLICKS}{PRICES}
        CREATE VIEW once AS DEDUPLICATE clicks BY user WITHIN '1m' KEEP FIRST;
        CREATE VIEW pairs AS SELECT user FROM once JOIN prices ON once.user = prices.page WITHIN '0' AND '1m';
        CREATE VIEW named AS SELECT pairs.user FROM pairs JOIN TABLE users ON pairs.user = users.name;
        CREATE VIEW ok AS DIVERT named TO alerts WHEN user = '' BECAUSE 'no name';
        CREATE VIEW counts AS SELECT user, count(*) AS n FROM ok GROUP BY user, TUMBLE('5m');
        CREATE VIEW found AS MATCH counts BY user WITHIN '1h' STEPS (a TIMES 2 NEXT WHEN n > 1, b WHEN n = 0) UNLESS n > 9;
        INSERT INTO out TOP 2 OF found ORDER BY user;
        """,
        encoding="utf-8",
    )
    assert app_module.read(path).stateful_calls == ("deduplicate", "interval_join", "aggregate", "pattern", "top")
    assert app_module.read(path).stateful_operators == ("other", "join", "other", "other", "other")
    views = {one.name.text: one.query for one in read(path)[1] if isinstance(one, CreateView)}
    assert isinstance(views["once"], Deduplicate) and views["once"].keep == "first"
    assert isinstance(views["found"], Match) and [(step.times, step.next) for step in views["found"].steps] == [(2, True), (1, False)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT n, count(*) AS c FROM clicks GROUP BY HOP('10m' EVERY '1m' OFFSET '30s'), n HAVING c > 1 EMIT FINAL",
        "SELECT n, count(*) AS c FROM clicks LATERAL VIEW explode(array(n)) AS x WHERE x > 1 GROUP BY n HAVING c > 1 EMIT UPDATES",
        "SELECT n, count(*) AS c FROM clicks GROUP BY n, ROWS(5 EVERY 1)",
        "TOP 2 OF clicks PER user, n ORDER BY n ASC IN HOP('10m' EVERY '1m' OFFSET '30s') EMIT UPDATES",
        "TOP 2 OF clicks ORDER BY n IN CUMULATE('1h' STEP '10m' OFFSET '5m')",
        "TOP 2 OF clicks ORDER BY n IN SESSION('10m')",
        "TOP 2 OF clicks ORDER BY n IN (1, 2) DESC, upper(user) ASC, if(n > 1, n, 0) IN SESSION('10m') WITH DENSE TIES EMIT UPDATES",
        "DEDUPLICATE clicks BY user, n WITHIN '5m' KEEP FIRST",
    ],
)
def test_the_forms_of_the_documents_are_read(text: str) -> None:
    assert isinstance(statements(f"{CLICKS}INSERT INTO out {text}")[-1], Insert)


@pytest.mark.parametrize("way", ["IN HOP('10m' EVERY '1m')", "IN SESSION('5m')", "IN CUMULATE('1h' STEP '10m')", "KEPT '1h' EMIT CHANGES"])
def test_a_join_waits_in_any_window_and_what_a_row_is_known_by_stands_before_its_other_name(way: str) -> None:
    assert select(f"SELECT c.n FROM clicks UNIQUE (user, n) AS c FULL JOIN prices UNIQUE (page) AS p ON c.user = p.page {way}").join


def test_a_union_reads_its_views() -> None:
    union = statements(f"{CLICKS}{PRICES}INSERT INTO out SELECT user AS x FROM clicks WHERE n > 1 UNION ALL SELECT page AS x FROM prices")[
        -1
    ]
    assert isinstance(union, Insert) and isinstance(union.query, Union)
    assert [name.text for name in union.query.uses] == ["clicks", "prices"]


@pytest.mark.parametrize(
    ("text", "line", "need"),
    [
        (f"{CLICKS}INSERT INTO out SELECT n + 1 FROM clicks", 2, "a name for the column"),
        (f"{CLICKS}INSERT INTO out SELECT n FROM clicks ORDER BY n", 2, "no ORDER BY"),
        (f"{CLICKS}INSERT INTO out SELECT n FROM clicks LIMIT 3", 2, "no LIMIT"),
        (f"{CLICKS}INSERT INTO out SELECT DISTINCT n FROM clicks", 2, "no DISTINCT"),
        (f"{CLICKS}INSERT INTO out SELECT n FROM clicks UNION SELECT n FROM clicks", 2, "no UNION"),
        (f"{CLICKS}INSERT INTO out SELECT sum(n)\nOVER (PARTITION BY user) AS s FROM clicks", 3, "no OVER"),
        (f"{CLICKS}INSERT INTO out SELECT explode(array(n)) AS s FROM clicks", 2, "one value per row"),
        (f"{CLICKS}INSERT INTO out SELECT (SELECT 1) AS s FROM clicks", 2, "no subquery"),
        (f"{CLICKS}INSERT INTO out SELECT n FROM (SELECT n FROM clicks)", 2, "the name of a view"),
        (f"{CLICKS}INSERT INTO out SELECT n FROM clicks, clicks", 2, "one view"),
        (f"{CLICKS}{PRICES}INSERT INTO out SELECT n FROM clicks JOIN prices ON clicks.user = prices.page", 3, "how long rows wait"),
        (f"{CLICKS}{PRICES}INSERT INTO out SELECT n FROM clicks JOIN prices ON user = page WITHIN '0' AND '1m'", 3, "fields of both"),
        (f"{CLICKS}{PRICES}INSERT INTO a SELECT n FROM clicks FULL JOIN VERSIONS OF prices ON clicks.n = prices.page", 3, "INNER or LEFT"),
        (f"{CLICKS}INSERT INTO out SELECT n FROM clicks GROUP BY upper(user), TUMBLE('5m')", 2, "column names"),
        (f"{CLICKS}INSERT INTO out SELECT n FROM clicks GROUP BY HOP('5m')", 2, "EVERY"),
        (f"{CLICKS}INSERT INTO out SELECT n FROM clicks GROUP BY TUMBLE(5)", 2, "a quoted string"),
        (f"{CLICKS}INSERT INTO out TOP 1 OF clicks ORDER BY n DESC,\nuser ASC NULLS LAST", 3, "no NULLS FIRST"),
        (f"{CLICKS}INSERT INTO out TOP 1 OF clicks ORDER BY n DESC user", 2, "the end of the statement"),
        (f"{CLICKS}INSERT INTO out TOP many OF clicks ORDER BY n", 2, "an integer"),
        (f"{CLICKS}INSERT INTO out MATCH clicks BY user WITHIN '1m' STEPS ()", 2, "something between the parentheses"),
        (f"{CLICKS}INSERT INTO out SELECT n, FROM clicks", 2, "an expression between the commas"),
        (f"{CLICKS}INSERT INTO out SELECT FROM clicks", 2, "an expression"),
        (f"{CLICKS}INSERT INTO out SELECT n FROM clicks WHERE", 2, "an expression"),
        (f"{CLICKS}DROP TABLE clicks; INSERT INTO out SELECT n FROM clicks", 2, "CREATE SOURCE"),
        (f"{CLICKS}INSERT INTO out SELECT n FROM clicks WHERE n IN (1", 2, "its other end"),
        (f"{CLICKS}INSERT INTO out SELECT n FROM clicks WHERE n > 1)", 2, "a ( before it"),
        (f"{CLICKS}INSERT INTO out SELECT n FROM clicks WHERE user = 'a", 2, "its other end"),
        (f"{CLICKS}INSERT INTO out SELECT n FROM clicks /* WHERE", 2, "its other end"),
        (f"{CLICKS}INSERT INTO out SELECT n FROM nowhere", 2, "a source or a view created above: clicks"),
        (f"{CLICKS}{CLICKS}INSERT INTO out SELECT n FROM clicks", 2, "already used on line 1"),
        (f"{CLICKS}{PRICES}INSERT INTO out SELECT n FROM clicks", 2, "a view or an INSERT that reads it"),
        (f"{CLICKS}INSERT INTO out SELECT * FROM clicks;\nINSERT INTO out SELECT * FROM clicks WHERE n > 1", 3, "separate sinks; line 2"),
        (f"{CLICKS}INSERT INTO out SELECT * FROM clicks; SIDE OUTPUT a;\nSIDE OUTPUT b", 3, "one sink per tag; line 2 sends quarantined"),
        (f"{CLICKS}SIDE OUTPUT a FOR late; SIDE OUTPUT a FOR x;\nSIDE OUTPUT b FOR late; INSERT INTO o SELECT * FROM clicks", 3, "per tag"),
        (f"{CLICKS}INSERT INTO out SELECT n FROM clicks WHERE n > 1\nAND row_number() OVER (ORDER BY n) = 1", 3, "no OVER"),
        (f"{CLICKS}INSERT INTO out SELECT n FROM clicks GROUP BY n, ROWS(2)\nHAVING n IN (SELECT 1)", 3, "no subquery"),
        (f"{CLICKS}CREATE FUNCTION f RETURNS INT AS f;\nINSERT INTO out SELECT n FROM clicks", 2, "a quoted string"),
        (f"{CLICKS}CREATE FUNCTION f RETURNS TABLE (n INT) AS 'm.f';\nINSERT INTO out SELECT n FROM clicks", 2, "the type of a value"),
        (f"{CLICKS}CREATE KEYED FUNCTION f RETURNS INT AS 'm.f';\nINSERT INTO out SELECT n FROM clicks", 2, "RETURNS TABLE"),
        (f"{CLICKS}CREATE FUNCTION f AS 'm.f';\nCREATE TABLE FUNCTION F AS 'm.g'; INSERT INTO o SELECT n FROM clicks", 3, "line 2 creates"),
        (f"{CLICKS}INSERT INTO out CALL f OF clicks KEY n", 2, "a function created above: none yet"),
        (f"{CLICKS}INSERT INTO out PROCESS clicks BY user\nWITH f", 3, "a function created above"),
        (CLICKS, 1, "a view or an INSERT"),
        ("", 1, "INSERT INTO a sink"),
    ],
)  # fmt: skip
def test_invalid_sql_is_reported_with_its_line(text: str, line: int, need: str) -> None:
    errors = faults(text)
    assert errors[0].code == "SPEC-045" and errors[0].at and errors[0].at.line == line and errors[0].fix
    assert need in errors[0].need, errors[0].need


def test_a_view_that_is_read_twice_would_read_its_topics_twice() -> None:
    views = "CREATE VIEW a AS SELECT n FROM clicks;\nCREATE VIEW b AS SELECT n FROM clicks;\n"
    twice = f"{CLICKS}{views}INSERT INTO out SELECT a.n FROM a JOIN b ON a.n = b.n IN TUMBLE('1m')"
    error = fault(twice)
    assert (error.at and error.at.line, error.given) == (3, "clicks") and "line 2" in error.need


def test_inserts_of_one_view_are_one_output_and_others_read_their_views_by_themselves() -> None:
    routes = "INSERT INTO a SELECT * FROM clicks WHERE n > 1; INSERT INTO b SELECT * FROM clicks;"
    views = "CREATE VIEW big AS SELECT n FROM clicks WHERE n > 1;"
    found = outputs(statements(f"{CLICKS}{views}{routes} INSERT INTO c SELECT n FROM big; INSERT INTO d SELECT n FROM clicks"))
    assert [[one.sink.text for one in output if isinstance(one, Insert)] for output in found] == [["a", "b"], ["c"], ["d"]]


def test_an_error_has_the_column_too() -> None:
    place = fault(f"{CLICKS}INSERT INTO out\n  SELECT n AS m, n + 1 FROM clicks").at
    assert place is not None and (place.line, place.column, str(place)) == (3, 18, "app.sql:3:18")


def test_all_invalid_statements_are_reported_at_once() -> None:
    lines = [error.at.line for error in faults("CREATE THING a;\nINSERT out;\nSIDE SHOW x") if error.at]
    assert lines == [1, 2, 3]


@pytest.mark.parametrize("body", [b"\xff\xfe", b"-" * (MAX_BYTES + 1)])
def test_a_file_that_is_not_text_or_too_long_is_reported(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "app.sql").write_bytes(body)
    with pytest.raises(PenstockError) as error:
        app_module.read(tmp_path / "app.sql")
    assert error.value.errors[0].code == "SPEC-045"


def test_deep_brackets_and_odd_characters_are_no_trouble() -> None:
    deep = "(" * 20_000 + "n" + ")" * 20_000
    assert select(f"SELECT {deep} AS n FROM clicks").items[0].name == "n"
    assert fault(f"{CLICKS}INSERT INTO out § ").need == "SELECT"


def test_a_file_is_searched_beside_the_spec_and_on_the_app_path(tmp_path: Path) -> None:
    folder = tmp_path / "apps"
    folder.mkdir()
    (folder / "counts.sql").write_text("", encoding="utf-8")
    assert app_module.find("counts.sql", tmp_path, [folder]) == folder / "counts.sql"
    with pytest.raises(AppNotFound) as error:
        app_module.find("count.sql", tmp_path, [folder])
    assert "did you mean counts.sql?" in error.value.render()


def test_a_file_beside_the_spec_goes_to_the_cluster_with_it(tmp_path: Path) -> None:
    (tmp_path / "counts.sql").write_text("-- nothing", encoding="utf-8")
    assert app_module.sql_beside("counts.sql", tmp_path) == {"counts.sql": "-- nothing"}
    assert app_module.sql_beside("penstock.jobs.apps.flights", tmp_path) == app_module.sql_beside("on_the_image.sql", tmp_path) == {}


def test_reading_does_not_need_spark() -> None:
    code = "import sys; import penstock.jobs.sql.parsing; print('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
