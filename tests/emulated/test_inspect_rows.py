"""``penstock inspect --rows`` on a recorded checkpoint: what Spark reads of every kind of state."""

from __future__ import annotations

import re
from typing import Any

import pytest

from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.errors import WrongUsage
from penstock.scripts.operations.state_rows import StateRows
from penstock.scripts.operations.state_table import state_lines
from penstock.scripts.render.screen import Screen
from tests.emulated.recorded_job import RECORDED, RecordedJob


@pytest.fixture(scope="module")
def place(aws: EmulatedAws, tmp_path_factory: pytest.TempPathFactory) -> RecordedJob:
    """The recorded job, as if it had run in this bucket: Spark's metadata have the URIs of its schemas."""
    place = RecordedJob(aws, tmp_path_factory.mktemp("place"))
    place.restore()
    for name, content in RECORDED.items():
        if "/_metadata/v2/" in name and content:
            place.put(name, re.sub(rb"s3a://[^/]+/", f"s3a://{place.bucket}/".encode(), content))
    return place


def test_the_rows_of_a_key_are_shown_of_every_operator_that_can_be_read(place: RecordedJob, capsys: pytest.CaptureFixture[str]) -> None:
    gone = next(name for name in RECORDED if re.fullmatch(r"queries/once/state/0/1/6_[0-9a-f-]+\.changelog", name))
    with place.damaged(gone, None):
        code, content = place.json(capsys, "--rows", "2", "--key", "k")
    folder = f"s3a://{place.bucket}/every-state/checkpoints/1"
    assert (code, content["checkpoint"]) == (5, folder)
    (error,) = content["errors"]
    assert (error["code"], error["path"]) == ("DEP-045", f"{folder}/queries/once, operator 0 dedupeWithinWatermark")
    states = {(one["query"], one["state"]): one for one in content["states"]}
    keyed = [("names", name) for name in ("penstock_held", "penstock_waiting", "seen")]
    assert list(states) == [("", ""), *keyed, ("pairs", "left"), ("pairs", "right")]
    window = {"start": "2025-04-05T12:30:30.000Z", "end": "2025-04-05T12:30:40.000Z"}
    assert _rows(states["", ""]) == [({"key": "k", "window": window}, {"count": 1})]
    assert _rows(states["names", "seen"]) == [({"key": "k"}, {"value": {"names": "a3", "ends": 1_743_856_222_000}})]
    assert [row["list_element"]["value"]["name"] for row in states["names", "penstock_held"]["rows"]] == ["a6"]
    left = states["pairs", "left"]
    assert [value["_extract_name"] for _, value in _rows(left)] == ["a1", "a3"]
    assert (left["operator"], left["operatorName"], left["microBatch"], left["more"]) == (0, "symmetricHashJoin", 7, True)
    assert states["names", "seen"]["more"] is False


def test_a_table_has_the_columns_of_keys_and_values() -> None:
    rows = ({"key": {"user": "u", "open": True}, "value": {"count": 1}, "partition_id": 0}, {"key": {"user": "v", "open": None}})
    what = {"query": "", "operator": 0, "operator_name": "stateStoreSave", "state": "", "micro_batch": 3}
    state = StateRows.model_validate({**what, "columns": ("key", "value", "partition_id"), "rows": rows, "more": True})
    lines = list(state_lines(state, "clicks", Screen()))
    assert lines[0] == "operator 0 stateStoreSave of query clicks, after micro-batch 3"
    assert [line.split() for line in lines[2:5]] == [
        ["key.user", "key.open", "value.count", "partition_id"],
        ["u", "true", "1", "0"],
        ["v", "-", "-", "-"],
    ]
    assert lines[-1] == "  and more: --rows shows 2 rows"


@pytest.mark.parametrize(
    ("words", "given"),
    [
        (("--rows", "--query", "name"), "--query name"),
        (("--rows", "--query", "names", "--state", "sen"), "--query names --state sen"),
        (("--rows", "--operator", "7"), "--operator 7"),
    ],
)
def test_state_that_does_not_exist_is_said_with_what_does(place: RecordedJob, words: tuple[str, ...], given: str) -> None:
    with pytest.raises(WrongUsage) as raised:
        place.inspect(*words)
    assert raised.value.given == given
    assert "--query names --operator 0 --state seen; --query once --operator 0; --query pairs" in (raised.value.need or "")


def test_what_selects_rows_needs_rows(place: RecordedJob) -> None:
    with pytest.raises(WrongUsage) as raised:
        place.inspect("--query", "names", "--key", "k")
    assert raised.value.given == "--query --key"


def _rows(state: dict[str, Any]) -> list[tuple[Any, Any]]:
    return [(row["key"], row["value"]) for row in state["rows"]]
