"""docs/flink-operations.md: every example of the page is run, and gives the rows that stand below it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import functions as F

from penstock.jobs.blocks.joins import union
from penstock.jobs.blocks.lookups.table import LookupTable, open_table
from penstock.jobs.driver.sql_app import declare
from penstock.jobs.spec import Table
from penstock.jobs.stream.streams import Stream
from penstock.scripts.layout import ROOT
from penstock.scripts.local.servers.postgres_server import PostgresServer
from tests.jobs.spark.blocks import Input, Ran, row, run, same
from tests.jobs.spark.running import Surroundings

PAGE = ROOT / "docs/flink-operations.md"
INPUTS = {"clicks": "user STRING, page STRING, n INT", "prices": "page STRING, price INT"}
# Several examples in one query: a query costs seconds, and with too many of them its micro-batches do.
IN_ONE_QUERY = 10
Rows = list[dict[str, str]]


@dataclass(frozen=True)
class Example:
    """A section of the page.

    Args:
        name: its heading.
        language: of its code.
        code: that makes ``out``.
        expected: rows of ``out``.
        side_outputs: rows that it sets aside; each has its tag and its reason.
    """

    name: str
    language: str
    code: str
    expected: Rows
    side_outputs: Rows

    @property
    def inputs(self) -> list[str]:
        """Names of the streams that it reads."""
        return [name for name in INPUTS if re.search(rf"\b{name}\b", self.code)]

    @property
    def updates(self) -> bool:
        """Whether it tells current values: such a query has nothing else beside it."""
        return "EMIT UPDATES" in self.code


def _table(text: str) -> Rows:
    lines = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.strip().splitlines()]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[2:]]


def _tables(text: str) -> list[Rows]:
    return [_table(match) for match in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)]


@cache
def page() -> tuple[str, dict[str, str]]:
    """What stands before the examples, and name -> text of each."""
    head, *sections = re.split(r"^### (?=.)", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    named = (section.split("\n", 1) for section in sections)
    return head, {name: re.split(r"^## ", text, flags=re.MULTILINE)[0] for name, text in named}


@cache
def examples() -> dict[str, Example]:
    result = {}
    for name, text in page()[1].items():
        ((language, code),) = re.findall(r"^```(\w+)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
        expected, *side_outputs = _tables(text.split("```")[-1])
        result[name] = Example(name, language, code, expected, side_outputs[0] if side_outputs else [])
    return result


def _groups() -> Iterator[list[str]]:
    alone = [example.name for example in examples().values() if example.updates]
    together = [name for name in examples() if name not in alone]
    yield from ([name] for name in alone)
    # Dealt out, so that those with much state are not all in one.
    queries = -(-len(together) // IN_ONE_QUERY)
    yield from (together[number::queries] for number in range(queries))


@cache
def _data() -> dict[str, list[Rows]]:
    """Input -> its micro-batches; and the table of users."""
    tables = re.findall(r"^`(\w+)`.*:\n\n((?:\|.*\n)+)", page()[0], flags=re.MULTILINE)
    data: dict[str, list[Rows]] = {}
    for name, text in tables:
        rows = _table(text)
        numbers = sorted({one.get("micro-batch", "") for one in rows})
        data[name] = [[one for one in rows if one.get("micro-batch", "") == number] for number in numbers]
    return data


def _input(name: str) -> Input:
    def typed(one: Mapping[str, str]) -> dict[str, Any]:
        fields = {field: int(value) if value.isdigit() else value for field, value in one.items() if field not in ("micro-batch", "at")}
        return {**row(f"2025-04-05T{one['at']}+00:00"), **fields}

    return Input(INPUTS[name], [[typed(one) for one in batch] for batch in _data()[name]], bound_s=5)


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LookupTable]:
    values = ", ".join(f"('{one['name']}', '{one['country']}')" for one in _data()["users"][0])
    with PostgresServer(tmp_path_factory.mktemp("users") / "postgres") as server:
        server.run(f"CREATE TABLE users (name text PRIMARY KEY, country text); INSERT INTO users VALUES {values};")
        asked = {"postgres": {"connection": "users", "table": "users", "key": ["name"], "columns": ["country"]}}
        yield open_table("users", Table.model_validate(asked), server.url)


def _python(example: Example, streams: Mapping[str, Stream]) -> Stream:
    # No module has this name, so the functions are sent to the workers as they are.
    namespace: dict[str, Any] = {**streams, "__name__": "an_example_of_the_page"}
    exec(compile(example.code, f"{PAGE.name}, {example.name}", "exec"), namespace)
    out: Stream = namespace["out"]
    return out


def _sql(example: Example, streams: Mapping[str, Stream], users: LookupTable, folder: Path) -> Stream:
    path = folder / f"{re.sub('[^a-z]', '-', example.name.lower())}.sql"
    sources = "".join(f"CREATE SOURCE {name} ({INPUTS[name]});\n" for name in streams)
    path.write_text(f"{sources}{example.code}INSERT INTO sink SELECT * FROM out;\nSIDE OUTPUT errors;\n", encoding="utf-8")
    written: list[Stream] = []
    job: Any = SimpleNamespace(
        session=None,
        connections={},
        source=lambda name, schema, record: streams[name],
        table=lambda name: {"users": users}[name],
        side_output=lambda sink, tag: None,
        write=lambda stream, sink: written.append(stream),
    )
    declare(path, job)
    return written[0]


def _built(names: list[str], users: LookupTable, folder: Path) -> Callable[[Mapping[str, Stream]], Stream]:
    def build(streams: Mapping[str, Stream]) -> Stream:
        outs = []
        for name in names:
            example = examples()[name]
            mine = {source: streams[f"{number}-{source}"] for number, source in _sources(names) if number == names.index(name)}
            out = _python(example, mine) if example.language == "python" else _sql(example, mine, users, folder)
            text = F.to_json(F.struct(*out.fields), {"ignoreNullFields": "false"})
            outs.append(out.select(example=F.lit(name), row=text))
        return union(*outs)

    return build


def _sources(names: list[str]) -> list[tuple[int, str]]:
    return [(number, source) for number, name in enumerate(names) for source in examples()[name].inputs]


def _cells(result: Mapping[str, Any]) -> dict[str, str]:
    """A row as the page has it: times of that day without their date, nothing for null."""
    return {
        name: re.sub(r"2025-04-05T(\d\d:\d\d:\d\d)\.000Z", r"\1", "" if value is None else str(value)) for name, value in result.items()
    }


def _side_output_rows(ran: Ran) -> Iterator[dict[str, str]]:
    for tag in ("alerts", "failed"):
        for one in ran.side_outputs.get(tag, []):
            yield _cells({"tag": tag, "reason": one["reason"], **json.loads(one["value"])})


@pytest.mark.parametrize("names", list(_groups()), ids=lambda names: f"{names[0]}-and-{len(names) - 1}-more")
def test_every_example_gives_the_rows_that_stand_below_it(surroundings: Surroundings, users: LookupTable, names: list[str]) -> None:
    inputs = {f"{number}-{source}": _input(source) for number, source in _sources(names)}
    # What is told does not depend on the partitions, and every one of them costs a task for each of the blocks.
    ran = run(surroundings, inputs, _built(names, users, surroundings.folder), conf={"spark.sql.shuffle.partitions": "1"})
    ours, theirs = [], []
    for name in names:
        ours += [{"example": name, **_cells(json.loads(one["row"]))} for one in ran.rows if one["example"] == name]
        theirs += [{"example": name, **one} for one in examples()[name].expected]
    same(ours, theirs)
    same(_side_output_rows(ran), [one for name in names for one in examples()[name].side_outputs])


def test_every_row_of_the_overview_leads_to_an_example_that_is_written_so() -> None:
    rows = re.findall(r"^\| \[([^\]]+)\]\(#([^)]+)\) \| (.+) \|$", page()[0], flags=re.MULTILINE)
    assert [name for name, _, _ in rows] == list(examples())
    for name, anchor, here in rows:
        assert anchor == re.sub(r"[^\w -]", "", name.lower()).replace(" ", "-")
        said = re.findall("`([^`]+)`", here)[0]
        assert said in examples()[name].code, f"{name}: {said}"
