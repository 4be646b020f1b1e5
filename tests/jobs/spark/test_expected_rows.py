"""The example of rows in an expectation, as the page of the job spec shows it: the app on Spark, and the expectation without."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.jobs.local.recording import Recorded, Recording
from penstock.scripts.layout import ROOT
from penstock.scripts.local.verdict import canonical
from tests.jobs.spark.running import Surroundings

pytestmark = pytest.mark.spark

PAGE = ROOT / "docs" / "job-spec.md"
# More digits, cents without, no coupon and one, and the same order twice.
ORDERS: tuple[dict[str, Any], ...] = (
    {"user": "ann", "net": 10.04, "at": "2025-04-05T12:00:00Z"},
    {"user": "bob", "net": 100.00, "at": "2025-04-05T23:59:59Z", "coupon": "spring"},
    {"user": "bob", "net": 100.00, "at": "2025-04-05T23:59:59Z", "coupon": "spring"},
)


def _shown(name: str) -> str:
    (text,) = re.findall(rf"^`{re.escape(name)}`\n```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return str(text)


def _names(name: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(_shown(name), name, "exec"), names)
    return names


def test_the_rows_of_the_example_are_those_that_its_expectation_has(surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch) -> None:
    (surroundings.folder / "orders_app.py").write_text(_shown("orders_app.py"), encoding="utf-8")
    monkeypatch.syspath_prepend(str(surroundings.folder))
    job = surroundings.job("orders_app", sources={"orders": 1})
    values = [json.dumps(order).encode() for order in ORDERS]
    with job.running() as running:
        job.feed("orders", *values)
        running.until_read({"orders": [len(values)]})
    records = [Recorded(partition=0, offset=offset, key=None, value=value, flush=False) for offset, value in enumerate(values)]
    expected = _names("orders_checks.py")["expect"](Recording({"orders": records}, {"orders": 1}, [], {"orders": {0: 0}}))
    assert Counter(map(canonical, job.rows())) == expected.exact
    (row,) = re.findall(r"^`(\{\"at\": .*\})`\. Where rows differ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert expected.exact[row] == 1


def test_the_test_of_the_example_passes(session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "orders_app.py").write_text(_shown("orders_app.py"), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    _names("test_orders_app.py")["test_tax_is_rounded_to_cents"]()
