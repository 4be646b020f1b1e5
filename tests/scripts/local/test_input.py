"""What a spec may name as its local input and its expectation, and what is said of what can't be had."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from penstock.jobs.local.recording import Expectation, Record, Recording
from penstock.jobs.spec import SpecFile, load
from penstock.scripts.errors import ExpectationFailed, InputFailed
from penstock.scripts.local.input import expectation, generators

MODULE = "made_for_the_test_of_local_input"
SOURCE = """\
from penstock.jobs.local.recording import Expectation, Record

def with_partitions(partitions):
    for number in range(partitions):
        yield b"%d" % number

def without():
    yield b"alone"

def everything():
    yield Record(b"record", key=b"k", partition=3, flush=True)
    yield b"bytes"
    yield "text \\u00e9"
    yield {"a": 1}
    yield [1, None]

def no_generator(partitions):
    return [f"{partitions}"]

def failing(partitions):
    raise RuntimeError("half done")

def unfit():
    yield b"good"
    yield {"a": object()}

def expect(recording):
    return Expectation(rows=len(recording.records))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder beside a spec with a module of its own, forgotten after the test."""
    (tmp_path / f"{MODULE}.py").write_text(SOURCE, encoding="utf-8")
    before = list(sys.path)
    yield tmp_path
    sys.path[:] = before
    sys.modules.pop(MODULE, None)


def _spec(folder: Path, **local: object) -> SpecFile:
    document = {
        "apiVersion": "penstock/v1",
        "kind": "StreamingJob",
        "metadata": {"name": "tested"},
        "spec": {
            "app": "penstock.jobs.apps.user_credit",
            "parallelism": 1,
            "executor": {"memory": "2g"},
            "sources": {"a": {"kafka": {"topic": "events"}}},
            "local": local,
        },
    }
    path = folder / "tested.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return load(path)


def _records(folder: Path, reference: str, partitions: int = 2) -> list[Record]:
    made = generators(_spec(folder, input={"events": reference}), [folder])
    return list(made["events"](partitions))


def _line(folder: Path, text: str) -> int:
    """The line of the spec in which a text stands."""
    lines = (folder / "tested.yaml").read_text(encoding="utf-8").splitlines()
    (number,) = [number for number, line in enumerate(lines, start=1) if text in line]
    return number


def test_a_generator_is_given_the_number_of_partitions_if_it_takes_it(folder: Path) -> None:
    assert _records(folder, f"{MODULE}:with_partitions", 3) == [Record(b"0"), Record(b"1"), Record(b"2")]


def test_a_generator_need_not_take_the_number_of_partitions(folder: Path) -> None:
    assert _records(folder, f"{MODULE}:without") == [Record(b"alone")]


def test_a_generator_may_yield_records_bytes_text_and_what_json_can_write(folder: Path) -> None:
    assert _records(folder, f"{MODULE}:everything") == [
        Record(b"record", key=b"k", partition=3, flush=True),
        Record(b"bytes"),
        Record("text \u00e9".encode()),
        Record(b'{"a": 1}'),
        Record(b"[1, null]"),
    ]


def test_a_function_that_gives_a_list_will_do(folder: Path) -> None:
    assert _records(folder, f"{MODULE}:no_generator", 3) == [Record(b"3")]


def test_a_function_is_called_when_its_first_record_is_asked_for(folder: Path) -> None:
    # Whoever asks turns what is raised into RUN-013; raised earlier it would be a traceback.
    records = iter(generators(_spec(folder, input={"events": f"{MODULE}:failing"}), [folder])["events"](1))
    with pytest.raises(RuntimeError, match="half done"):
        next(records)


def test_what_is_no_record_is_named_with_its_topic(folder: Path) -> None:
    with pytest.raises(InputFailed) as raised:
        _records(folder, f"{MODULE}:unfit")
    error = raised.value
    assert (error.code, error.path) == ("RUN-013", "generator of events")
    assert error.given.startswith("{'a': <object object")
    assert "bytes, a string or a JSON-serializable mapping" in error.need


def test_a_file_of_lines_lies_beside_the_spec_and_is_fed_as_it_stands(folder: Path) -> None:
    (folder / "events.jsonl").write_bytes(b'{"a": 1}\r\n\n  {"a": 2}\nno JSON \xff\n   \n{"a": 3}')
    assert [record.value for record in _records(folder, "events.jsonl")] == [b'{"a": 1}', b'  {"a": 2}', b"no JSON \xff", b'{"a": 3}']


def test_an_input_is_read_anew_each_time(folder: Path) -> None:
    (folder / "events.jsonl").write_bytes(b"1\n2\n")
    generate = generators(_spec(folder, input={"events": "events.jsonl"}), [folder])["events"]
    assert list(generate(1)) == list(generate(1)) == [Record(b"1"), Record(b"2")]


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("no_such_module:events", "ModuleNotFoundError: No module named 'no_such_module'"),
        (f"{MODULE}:no_such_function", "AttributeError"),
        ("missing.jsonl", "FileNotFoundError"),
        ("json:__name__", "TypeError: json:__name__ is a str"),
    ],
)
def test_an_input_that_is_not_there_is_told_with_the_specs_line(folder: Path, reference: str, why: str) -> None:
    with pytest.raises(InputFailed) as raised:
        _records(folder, reference)
    error = raised.value
    assert error.at is not None
    assert (error.code, error.at.line, error.given) == ("RUN-013", _line(folder, reference), f'"{reference}"')
    assert error.path == "spec.local.input.events"
    assert why in error.need


def test_a_module_that_fails_while_it_is_imported_is_told_with_the_specs_line(folder: Path) -> None:
    (folder / f"{MODULE}.py").write_text("raise RuntimeError('half done')\n", encoding="utf-8")
    with pytest.raises(InputFailed) as raised:
        _records(folder, f"{MODULE}:without")
    assert raised.value.at is not None
    assert "RuntimeError: half done" in raised.value.need


def test_an_expectation_is_found_like_a_generator(folder: Path) -> None:
    result = expectation(_spec(folder, expect=f"{MODULE}:expect"), [folder])
    assert result is not None
    assert result(Recording({"events": []}, {"events": 1}, [], {"events": {}})) == Expectation(rows=1)


def test_a_spec_need_not_have_an_expectation(folder: Path) -> None:
    assert expectation(_spec(folder), [folder]) is None


@pytest.mark.parametrize("reference", ["no_such_module:expect", f"{MODULE}:no_such_function", "json:__name__", "expected.jsonl"])
def test_an_expectation_that_is_not_there_is_told_with_the_specs_line(folder: Path, reference: str) -> None:
    with pytest.raises(ExpectationFailed) as raised:
        expectation(_spec(folder, expect=reference), [folder])
    error = raised.value
    assert error.at is not None
    assert (error.code, error.at.line, error.given) == ("RUN-017", _line(folder, reference), f'"{reference}"')
