"""YAML documents with the line of each of their fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.jobs.document import MAX_BYTES, MAX_DEPTH, MAX_NODES, Document, dotted, parse_text, read, shown
from penstock.sizing.errors import PenstockError


class Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", alias_generator=to_camel)

    name: str
    out_of_orderness: int = 0
    kind: Literal["json", "avro"] = "json"


class Whole(Part):
    parts: dict[str, Part] = {}
    conf: dict[str, str | int | bool] = {}


def faults(text: str, model: type[BaseModel] | None = None) -> list[tuple[str, int | None, str]]:
    """Code, line and path of each error."""
    with pytest.raises(PenstockError) as error:
        document = parse_text(text, "job.yaml")
        if model:
            document.parse(model)
    return [(fault.code, fault.at.line if fault.at else None, fault.path) for fault in error.value.errors]


def only_fault(text: str, model: type[BaseModel] | None = None) -> PenstockError:
    with pytest.raises(PenstockError) as error:
        document = parse_text(text, "job.yaml")
        if model:
            document.parse(model)
    (fault,) = error.value.errors
    return fault


def test_values_come_as_yaml_has_them_and_timestamps_as_text() -> None:
    document = parse_text("a: 1\nb: [x, 2.5, null]\nc: {d: yes}\nt: 2026-11-21\n", "job.yaml")
    assert document.data == {"a": 1, "b": ["x", 2.5, None], "c": {"d": True}, "t": "2026-11-21"}


def test_every_field_has_its_place() -> None:
    document = parse_text("a:\n  b:\n    - c\n    - d: 1\n", "job.yaml")
    assert str(document.place(("a", "b", 1, "d"))) == "job.yaml:4"
    assert document.place(("a", "b", 0)).column == 7


def test_a_missing_field_has_the_place_of_its_closest_parent() -> None:
    assert str(parse_text("x: 1\na:\n  b: 1\n", "job.yaml").place(("a", "missing", "deep"))) == "job.yaml:2"


def test_a_duplicate_key_is_reported_with_both_lines() -> None:
    fault = only_fault("a: 1\nb: 2\na: 3\n")
    assert (fault.code, fault.at and fault.at.line) == ("SPEC-003", 3)
    assert "line 1" in fault.need


def test_all_the_keys_that_stand_twice_come_at_once() -> None:
    assert faults("a: {x: 1, x: 2}\nb:\n  y: 1\n  y: 2\n") == [("SPEC-003", 1, "a.x"), ("SPEC-003", 4, "b.y")]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: [1, 2\nc: 3\n", 3),
        ("a: 1\n\tb: 2\n", 2),
        ("a: *nowhere\n", 1),
        ("---\na: 1\n---\nb: 2\n", 3),
        ("", 1),
        ("# only a comment\n", 1),
        ("a: 1\nb: \x07\n", 2),
        ("[a, b]: 1\n", 1),
        ("%YAML 3.0\n---\na: 1\n", 1),
    ],
)
def test_invalid_yaml_is_reported_with_its_line(text: str, line: int) -> None:
    fault = only_fault(text)
    assert (fault.code, fault.at and fault.at.line) == ("SPEC-002", line)
    assert fault.need
    assert fault.fix


@pytest.mark.parametrize("value", ["!!bool maybe", "!!int ''", "!!float ''", "!!int 0x", "!x y", "="])
def test_a_value_that_yaml_itself_can_not_make_is_an_error_and_no_crash(value: str) -> None:
    fault = only_fault(f"a: 1\nb: {value}\n")
    assert (fault.code, fault.at and fault.at.line, fault.path) == ("SPEC-006", 2, "b")


def test_numbers_without_end_are_an_error_and_no_crash() -> None:
    base_60 = ":".join(["1", *["20"] * 300]) + ".5"
    assert faults(f"a: {'9' * 5000}\nb: {base_60}\n") == [("SPEC-006", 1, "a"), ("SPEC-006", 2, "b")]


@pytest.mark.parametrize(("opening", "times"), [("[", 900_000), ("- ", 400_000), ("{a: ", 200_000), ("? ", 300_000), ("[", MAX_DEPTH + 2)])
def test_deep_nesting_is_stopped_before_it_ends_the_process(opening: str, times: int) -> None:
    assert only_fault(opening * times).code == "SPEC-011"


def test_nesting_up_to_the_limit_is_fine() -> None:
    assert parse_text("[" * MAX_DEPTH + "]" * MAX_DEPTH, "job.yaml").data


def test_a_yaml_bomb_is_stopped() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    for last, this in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{this}: &{this} [{', '.join([f'*{last}'] * 10)}]")
    assert only_fault("\n".join(lines)).code == "SPEC-011"


def test_an_alias_that_holds_itself_is_stopped() -> None:
    assert only_fault("a: &a [*a]\n").code == "SPEC-011"


def test_too_many_values_are_stopped() -> None:
    assert only_fault(f"a: [{'1, ' * MAX_NODES}]").code == "SPEC-011"


def test_an_alias_is_fine_where_it_saves_typing() -> None:
    assert parse_text("a: &x {b: 1}\nc: *x\n", "job.yaml").data == {"a": {"b": 1}, "c": {"b": 1}}


def test_a_merge_is_named_as_what_it_is_with_its_line() -> None:
    fault = only_fault("base: &base {name: a}\nwhole:\n  <<: *base\n")
    assert (fault.code, fault.path, fault.given) == ("SPEC-004", "whole.<<", "a YAML merge")
    assert fault.at is not None and fault.at.line == 3
    assert "not part of YAML 1.2" in fault.need and "(key: *name)" in fault.fix


def test_a_key_in_quotes_is_no_merge() -> None:
    assert parse_text('{"<<": 1}', "job.yaml").data == {"<<": 1}


@pytest.mark.parametrize(
    ("value", "fix"),
    [("1e18", "write 1000000000000000000"), ("2.5E3", "write 2500"), ("-1e-3", "write -0.001"), ("1e999999999999", "write all digits")],
)
def test_a_number_with_an_exponent_is_named_as_the_text_that_yaml_makes_of_it(value: str, fix: str) -> None:
    fault = only_fault(f"{{name: a, outOfOrderness: {value}}}", Whole)
    assert (fault.code, fault.fix) == ("SPEC-006", fix)
    assert fault.need == "an integer; with an exponent like this it is text in YAML 1.1"


def test_a_missing_file_is_reported_by_name(tmp_path: Path) -> None:
    with pytest.raises(PenstockError) as error:
        read(tmp_path / "none.yaml")
    assert (error.value.code, error.value.at and error.value.at.file) == ("SPEC-001", str(tmp_path / "none.yaml"))


def test_a_folder_is_not_a_document(tmp_path: Path) -> None:
    with pytest.raises(PenstockError) as error:
        read(tmp_path)
    assert (error.value.code, error.value.given) == ("SPEC-001", "a directory")


def test_bytes_that_are_not_utf_8_are_reported_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(PenstockError) as error:
        read(path)
    assert (error.value.code, error.value.at and error.value.at.line) == ("SPEC-001", 2)


def test_a_file_beyond_the_limit_is_not_read_to_its_end() -> None:
    with pytest.raises(PenstockError) as error:
        read(Path("/dev/zero"))
    assert error.value.code == "SPEC-011"
    assert str(MAX_BYTES) in error.value.need


def test_an_unknown_field_names_the_known_ones_and_the_closest() -> None:
    fault = only_fault("name: a\nparts:\n  x:\n    name: b\n    outOfOrdernes: 5\n", Whole)
    assert (fault.code, fault.at and fault.at.line, fault.path) == ("SPEC-004", 5, "parts.x.outOfOrdernes")
    assert fault.need == "one of name, outOfOrderness, kind"
    assert fault.fix == "did you mean outOfOrderness?"


def test_snake_case_is_nearly_right() -> None:
    assert only_fault("name: a\nout_of_orderness: 5\n", Whole).fix == "did you mean outOfOrderness?"


def test_a_missing_field_has_the_line_of_what_it_is_missing_from() -> None:
    assert faults("name: a\nparts:\n  x: {kind: json}\n", Whole) == [("SPEC-005", 3, "parts.x.name")]


@pytest.mark.parametrize(
    ("value", "need", "fix"),
    [
        ('outOfOrderness: "5"', "an integer", "remove the quotes"),
        ("outOfOrderness: 1.5", "an integer", "use an integer"),
        ("kind: jsno", 'one of "json" or "avro"', 'did you mean "json"?'),
        ("parts: [a]", "a mapping", "use a mapping"),
        ("parts: {x: 5}", "a mapping with name, outOfOrderness, kind", "add the fields below it"),
        ("conf: {a: [1]}", "a string, an integer or true or false", "see the JSON Schema"),
    ],
)
def test_an_invalid_value_is_reported_with_what_is_needed(value: str, need: str, fix: str) -> None:
    fault = only_fault(f"name: a\n{value}\n", Whole)
    assert (fault.code, fault.need, fault.fix) == ("SPEC-006", need, fix)


def test_a_text_that_yaml_took_for_something_else_wants_quotes() -> None:
    fault = only_fault("name: on\n", Whole)
    assert (fault.given, fault.need, fault.fix) == ("true", "a string", "quote it")


def test_all_the_faults_of_a_document_come_at_once_in_its_order() -> None:
    assert faults("kind: x\nnmae: a\noutOfOrderness: many\nparts: {p: 1}\n", Whole) == [
        ("SPEC-005", 1, "name"),
        ("SPEC-006", 1, "kind"),
        ("SPEC-004", 2, "nmae"),
        ("SPEC-006", 3, "outOfOrderness"),
        ("SPEC-006", 4, "parts.p"),
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", '"a"'), (True, "true"), (None, "null"), (1.5, "1.5"), ({"a": 1}, '{"a": 1}')],
)
def test_a_value_is_shown_as_a_person_writes_it(value: Any, text: str) -> None:
    assert shown(value) == text


def test_a_number_too_long_for_python_is_shown_in_words() -> None:
    assert shown({"a": 16**5000}) == "a number too long to display"


def test_a_long_value_is_cut() -> None:
    assert len(shown("x" * 1000)) == 120


def test_a_path_is_dotted() -> None:
    assert dotted(("spec", "queries", 0, "name")) == "spec.queries[0].name"


@given(text=st.one_of(st.text(max_size=200), st.text(alphabet="ab:-[]{}&*!|>'\"#%@? \n\t,0.", max_size=60)))
def test_any_text_is_a_document_or_a_coded_error_with_a_line(text: str) -> None:
    try:
        document = parse_text(text, "job.yaml")
    except PenstockError as error:
        assert all(fault.at and fault.at.line for fault in error.errors)
    else:
        assert isinstance(document, Document)
