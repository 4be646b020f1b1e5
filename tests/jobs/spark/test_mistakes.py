"""Mistakes of an app's author, one at a time: each is found with its file, its line and what to do about it.

Most are found by the check, which only analyzes; those that show in records by the driver's and the local run's error paths.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.jobs.blocks.keyed import process
from penstock.jobs.driver.check import check
from penstock.jobs.driver.failure import as_fault
from penstock.jobs.driver.root_cause import OwnCode
from penstock.jobs.sinks.errors import SinkFunctionFailed
from penstock.jobs.sinks.function import Function
from penstock.jobs.sinks.sink import Batch
from penstock.jobs.spec import load
from penstock.jobs.storage.no_checkpoint import NoCheckpoint
from penstock.jobs.stream.streams import Stream
from penstock.sizing.errors import PenstockError
from tests.jobs.spark.blocks import Input, row, run
from tests.jobs.spark.running import Surroundings

# The lines of an app; a mistake replaces some of them.
APP = {
    1: "from pyspark.sql import functions as F",
    2: "from penstock import Tag, aggregate, interval_join, tumbling",
    3: 'OPERATORS = {"read": None, "count": "other", "write": None}',
    4: 'CLICKS = "user STRING NOT NULL, at STRING, page STRING, amount DOUBLE"',
    5: "def build(job):",
    6: '    clicks = job.source("clicks", CLICKS)',
    7: "    paid = clicks.filter(\"amount > 0 and page <> '/health'\")",
    8: '    paid = paid.divert("high", F.col("amount") > 1000, F.lit("too much"))',
    9: '    counts = aggregate(paid, tumbling("10s"), keys=["user"], n="count(1)", paid="sum(amount)")',
    10: '    job.write(counts, {"out": None, "few": "n < 10"})',
    11: '    job.side_output("errors")',
    12: '    job.side_output("late", Tag.LATE)',
    13: '    job.side_output("high", "high")',
}
SPEC: dict[str, Any] = {
    "parallelism": 2,
    "executor": {"slots": 2, "memory": "2g"},
    "sources": {"clicks": {"kafka": {"topic": "clicks"}, "time": {"field": "at", "outOfOrderness": "10s"}}},
    "sinks": {
        "out": {"files": {"path": "clicks"}},
        "few": {"kafka": {"topic": "few"}},
        "errors": {"kafka": {"topic": "errors"}},
        "late": {"kafka": {"topic": "late"}},
        "high": {"kafka": {"topic": "high"}},
    },
}


class Mistake(NamedTuple):
    """A mistake, and what its author is told.

    Args:
        lines: of the app, by number.
        line: that the error names.
        code: of the error.
        said: what is in its text.
        fix: what is in its fix.
        spec: of the job, where it is there.
        file: that the error names; the app unless given.
        helper: text of a module that the app imports.
    """

    lines: dict[int, str]
    line: int | None
    code: str
    said: str
    fix: str
    spec: Callable[[dict[str, Any]], object] = lambda spec: None
    file: str = "{app}.py"
    helper: str = ""


def _unused(spec: dict[str, Any]) -> None:
    spec["sources"]["views"] = {"kafka": {"topic": "views"}}


MISTAKES = {
    "a typo in a source's name": Mistake({6: '    clicks = job.source("click", CLICKS)'}, 6, "JOB-004", "clicks", "correct the name"),
    "a typo in a sink's name": Mistake(
        {10: '    job.write(counts, "outt")'}, 10, "JOB-004", "few, high, late, out", "correct the name"
    ),
    "a typo in a side output's sink": Mistake({11: '    job.side_output("error")'}, 11, "JOB-004", "errors", "correct the name"),
    "a typo in a tag": Mistake({13: '    job.side_output("high", "hihg")'}, 8, "JOB-004", '"high"', "correct the tag"),
    "a typo in a column of a condition": Mistake({7: '    paid = clicks.filter("amuont > 0")'}, 7, "JOB-003", "`amuont`", "mean amount?"),
    "a typo in a column of an aggregate": Mistake(
        {9: '    counts = aggregate(paid, tumbling("10s"), keys=["user"], paid="sum(amout)")'},
        9, "JOB-003", "`amout`", "mean amount?",
    ),
    "a typo in a function of SQL": Mistake({7: '    paid = clicks.filter("lenght(page) > 1")'}, 7, "JOB-003", "`lenght`", "there"),
    "a typo in an imported name": Mistake(
        {2: "from penstock import Tag, aggregate, interval_jion, tumbling"}, 2, "JOB-003", "interval_jion", "did you mean interval_join?"
    ),
    "a typo in a method": Mistake({7: '    paid = clicks.fliter("amount > 0")'}, 7, "JOB-003", "fliter", "did you mean filter?"),
    "a typo in the name of build": Mistake({5: "def bild(job):"}, None, "JOB-003", "build", "define it"),
    "an import that is missing": Mistake({1: ""}, 8, "JOB-003", "name 'F' is not defined", "import or define F"),
    "a module that is not installed": Mistake({1: "import reqests"}, 1, "JOB-003", "reqests", "install reqests"),
    "a module of the team's that can't be parsed": Mistake(
        {1: "from {app}_pages import F"}, 2, "JOB-003", "SyntaxError", "there", file="{app}_pages.py", helper="import os\ndef (:\n"
    ),
    "a module of the team's that raises": Mistake(
        {1: "from {app}_pages import F"}, 3, "JOB-003", "KeyError", "there", file="{app}_pages.py", helper="x = {}\n\nF = x[1]\n"
    ),
    "an exception in build": Mistake({9: "    counts = paid.select(n=1 // 0)"}, 9, "JOB-003", "ZeroDivisionError", "there"),
    "an app that exits": Mistake({9: "    raise SystemExit(0)"}, 9, "JOB-003", "SystemExit", "there"),
    "an exception in a function of a micro-batch": Mistake(
        {10: '    job.write(counts, {"out": lambda rows: rows.where(1 // 0)})'}, 10, "JOB-003", "ZeroDivisionError", "correct"
    ),
    "a type that Spark does not know": Mistake({4: 'CLICKS = "user STRNG, at STRING, page STRING"'}, 6, "JOB-004", "STRNG", "schema"),
    "a wrong type in an expression": Mistake({7: '    paid = clicks.filter("array(amount) > 1")'}, 7, "JOB-003", "DATATYPE_MISMATCH", ""),
    "a schema without the event time": Mistake({4: 'CLICKS = "user STRING, page STRING"'}, 6, "JOB-004", "event-time field, at", "add it"),
    "a value format that can't have the schema": Mistake(
        {}, 6, "JOB-004", "text", "", lambda spec: spec["sources"]["clicks"]["kafka"].update(value="text")
    ),
    "no side output for malformed records": Mistake({11: ""}, 5, "JOB-004", "job.side_output", "add it"),
    "no output": Mistake({10: ""}, 5, "JOB-004", "job.write(stream, sink)", "write the output"),
    "a source of the spec that the app does not take": Mistake({}, 5, "JOB-004", "unused: views", "remove it", _unused),
    "a condition of a sink that Spark can't analyze": Mistake(
        {10: '    job.write(counts, {"out": None, "few": "m < 10"})'}, 10, "JOB-004", "`m`", "correct the condition"
    ),
    "an operator that a stream can't have": Mistake(
        {10: '    job.write(clicks.df.orderBy("user"), {"out": None, "few": None})', 9: "", 3: ""},
        10, "JOB-004", "Sorting is not supported", "change the query",
    ),
    "an output mode that the query can't have": Mistake(
        {10: '    job.write(clicks.df.groupBy("user").count(), "few", output_mode="append")', 9: ""},
        10, "JOB-004", "output mode", "change the query",
    ),
    "operators that are not declared": Mistake(
        {3: 'OPERATORS = {"read": None, "write": None, "x": "join"}'}, 3, "JOB-011", "1 x other", ""
    ),
    "a function of a sink that the app does not have": Mistake(
        {}, None, "JOB-057", "notify", "define it", lambda spec: spec["sinks"].update(few={"function": {"name": "notify"}}), "{app}.yaml"
    ),
}  # fmt: skip


def written(folder: Path, mistake: Mistake) -> tuple[str, Path]:
    """The app and its spec; the app's name and the spec's path."""
    name = f"app_{uuid.uuid4().hex[:8]}"
    lines = {**APP, **mistake.lines}
    (folder / f"{name}.py").write_text("".join(f"{lines[number]}\n" for number in sorted(lines)).replace("{app}", name), encoding="utf-8")
    if mistake.helper:
        (folder / f"{name}_pages.py").write_text(mistake.helper, encoding="utf-8")
    spec: dict[str, Any] = yaml.safe_load(yaml.safe_dump(SPEC))
    mistake.spec(spec)
    document = {"apiVersion": "penstock/v1", "kind": "StreamingJob", "metadata": {"name": "clicks"}, "spec": {"app": name, **spec}}
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return name, path


NONE = Mistake({}, None, "", "", "")


def test_what_is_installed_below_a_folder_of_the_team_is_neither_forgotten_nor_counted(session: SparkSession, tmp_path: Path) -> None:
    packages = tmp_path / "venv/site-packages"
    packages.mkdir(parents=True)
    (packages / "installed_below.py").write_text("from pyspark.sql import functions as F\n", encoding="utf-8")
    name, spec = written(tmp_path, NONE._replace(lines={1: "from installed_below import F"}))
    assert check(load(spec), [], session, tmp_path, [packages]) == (spec, tmp_path / f"{name}.py")
    assert sys.modules.pop("installed_below").__file__ == str(packages / "installed_below.py")


def test_an_app_without_a_mistake_passes_the_check_and_leaves_none_of_its_modules(session: SparkSession, tmp_path: Path) -> None:
    name, spec = written(tmp_path, NONE._replace(lines={1: "from {app}_pages import F"}, helper="from pyspark.sql import functions as F\n"))
    path = list(sys.path)
    assert check(load(spec), [], session, tmp_path) == (spec, tmp_path / f"{name}.py", tmp_path / f"{name}_pages.py")
    assert name not in sys.modules
    assert sys.path == path


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_mistake_is_found_with_its_place_and_its_fix(session: SparkSession, tmp_path: Path, kind: str) -> None:
    mistake = MISTAKES[kind]
    name, spec = written(tmp_path, mistake)
    with pytest.raises(PenstockError) as raised:
        check(load(spec), [], session, tmp_path)
    (error,) = raised.value.errors
    text = error.render()
    assert error.code == mistake.code, text
    assert error.at is not None, text
    assert error.at.file == str(tmp_path / mistake.file.format(app=name)), text
    # In a spec, that of the field.
    assert error.at.line == mistake.line or mistake.file.endswith(".yaml"), text
    assert mistake.said in text, text
    assert error.fix, text
    assert mistake.fix in error.fix, text


FUNCTIONS = """\
from pyspark.sql import functions as F
def share(amount):
    return 1 // int(amount * 0)
def of_rows(frames):
    for frame in frames:
        yield frame.assign(amount=frame["amuont"])
def by_udf(frame):
    return frame.select(F.udf(share, "int")("amount"))
def by_pandas(frame):
    return frame.mapInPandas(of_rows, "amount DOUBLE")
def keyed(row, key):
    return [{"first": row.user[9]}]
def into_sink(rows, batch):
    send(rows.collect())
def send(rows):
    return rows[0]["amuont"]
"""


@pytest.fixture
def functions(tmp_path: Path) -> dict[str, Any]:
    """The functions of a team, in a file that workers need not import."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(FUNCTIONS, str(tmp_path / "functions.py"), "exec"), names)
    return names


@pytest.mark.parametrize(("function", "line", "said"), [("by_udf", 3, "ZeroDivisionError"), ("by_pandas", 6, "KeyError: 'amuont'")])
def test_an_exception_in_a_function_that_tasks_call_has_its_place(
    session: SparkSession, tmp_path: Path, functions: dict[str, Any], function: str, line: int, said: str
) -> None:
    frame = functions[function](session.createDataFrame([(1.5,)], "amount DOUBLE"))
    with pytest.raises(PySparkException) as raised:
        frame.collect()
    error = as_fault(raised.value, "clicks", OwnCode((tmp_path,)))
    assert (error.code, str(error.at)) == ("JOB-005", f"{tmp_path}/functions.py:{line}")
    assert error.given.startswith(said)
    assert error.fix == "correct the app's function there"


def test_an_exception_in_a_keyed_function_has_its_place(surroundings: Surroundings, tmp_path: Path, functions: dict[str, Any]) -> None:
    def build(streams: Mapping[str, Stream]) -> Stream:
        return process(streams["clicks"], ["user"], functions["keyed"], output="first STRING")

    with pytest.raises(PySparkException) as raised:
        run(surroundings, {"clicks": Input("user STRING", [[row("10", user="ann")]])}, build)
    error = as_fault(raised.value, "clicks", OwnCode((tmp_path,)))
    assert (error.code, error.given) == ("JOB-005", "IndexError: string index out of range")
    assert str(error.at) == f"{tmp_path}/functions.py:12"


def test_an_exception_in_a_function_of_a_sink_has_its_place(session: SparkSession, tmp_path: Path, functions: dict[str, Any]) -> None:
    sink = Function("out", functions["into_sink"], NoCheckpoint("s3a://none/none"))
    with pytest.raises(SinkFunctionFailed) as raised:
        sink.write(session.createDataFrame([(1.5,)], "amount DOUBLE"), Batch(0, 1, 0))
    error = as_fault(raised.value, "clicks", OwnCode((tmp_path,)))
    assert str(error.at) == f"{tmp_path}/functions.py:16"
    assert error.fix.startswith("correct the function")
