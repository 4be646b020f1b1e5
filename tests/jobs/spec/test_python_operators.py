"""What an app runs in Python workers, without running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.jobs.spec import app_module
from penstock.scripts.layout import ROOT


def uses(folder: Path, text: str) -> list[str]:
    path = folder / "my_app.py"
    path.write_text(text, encoding="utf-8")
    return sorted(app_module.read(path).python_operators)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from penstock import aggregate, tumbling\naggregate(1, tumbling('1m'))\n", []),
        ("from penstock import interval_join\ninterval_join(1, 2)\n", []),
        ("from penstock import process as each\neach(1)\n", ["keyed"]),
        ("from penstock import aggregate, count_window\naggregate(1, count_window(3))\n", ["keyed"]),
        ("from penstock import temporal_join, lookup_join\nlookup_join(temporal_join(1, 2))\n", ["client", "keyed"]),
        ("from penstock import deduplicate\ndeduplicate(1, within='1m')\ndeduplicate(1, keep='any')\n", []),
        ("from penstock import deduplicate\ndeduplicate(1, keep='first')\n", ["keyed"]),
        ("from pyspark.sql import functions as F\nF.udf(str)('a')\n@F.udf('int')\ndef f(x): ...\n", ["udf"]),
        ("from pyspark.sql.functions import pandas_udf\n@pandas_udf('int')\ndef f(x): ...\n", ["pandas"]),
        ("def build(job):\n    job.source('a').df.mapInArrow(f, 'x int').groupBy('x').transformWithState(g)\n", ["arrow", "keyed"]),
        ("import json, decimal\nimport pyarrow as pa\nx = json.dumps(1)\n", []),
        ("from penstock import broadcast_join\nbroadcast_join(1, 2)\n", ["keyed"]),
        ("import aiohttp, httpx\nfrom penstock import call\ncall(1, aiohttp)\n", ["client"]),
        # What is imported from elsewhere is not read.
        ("from my_team.functions import scored\nscored(1)\n", ["keyed"]),
        ("from . import functions\n", ["keyed"]),
        ("import my_team\nfrom penstock import process\nprocess(1)\n", ["keyed"]),
    ],
)
def test_python_operators_are_found_in_the_syntax_tree(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert uses(tmp_path, text) == expected


def test_an_sql_app_has_those_of_its_blocks() -> None:
    assert app_module.read(ROOT / "jobs/specs/page_counts.sql").python_operators == ()


def test_steps_in_python_of_an_sql_app_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "app.sql"
    once, rows = "DEDUPLICATE s BY a WITHIN '1m' KEEP FIRST", "SELECT a, count(*) AS n FROM once GROUP BY a, ROWS(2)"
    changes = "SELECT n, sum(n) AS m, _op FROM rows GROUP BY n EMIT CHANGES"
    path.write_text(f"CREATE SOURCE s (a INT); CREATE VIEW once AS {once}; CREATE VIEW rows AS {rows}; INSERT INTO out {changes}", "utf-8")
    assert app_module.read(path).python_operators == ("keyed",) * 3


def test_a_shipped_app_has_its_join_its_lookup_and_its_function() -> None:
    found = app_module.read(ROOT / "jobs/apps/banking_enriched.py").python_operators
    assert sorted(found) == ["client", "keyed", "udf"]
