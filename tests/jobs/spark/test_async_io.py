"""Calls of an external system from within a stream: which rows are called for, what happens to the answers, and replays."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping

import pytest
from pyspark.errors import PythonException

from penstock.jobs.blocks.calls import call
from penstock.jobs.stream.streams import TIME, Stream, Tag
from tests.jobs.spark.blocks import Input, at, row, run, same
from tests.jobs.spark.outside import FailsOnce, Outside, calls, plain
from tests.jobs.spark.running import Surroundings

SCHEMA = "user STRING, n INT"


def test_each_row_has_its_answer_or_goes_to_a_side_output_with_the_reason(surroundings: Surroundings) -> None:
    notes = str(surroundings.folder / "notes")
    rows = [
        *(row("1", user="a", n=1), row("2", user="flaky", n=2), row("3", user="down", n=3), row(None, user="bad", n=0)),
        *(row("4", user="refused", n=4), row("5", user="slow", n=5), row("6", user="odd", n=6), row("7", user="nothing", n=7)),
        *(row("8", user="b", n=8), row("9", user="keyless", n=None), row("8", user="b", n=8)),
    ]

    def build(streams: Mapping[str, Stream]) -> Stream:
        key = "case when user <> 'keyless' then concat_ws('-', user, n) end"
        return call(
            streams["in"],
            Outside(notes),
            name="credit",
            key=key,
            result="credit DOUBLE NOT NULL",
            attempts=2,
            timeout="300ms",
            backoff="1ms",
        )

    ran = run(surroundings, {"in": Input(SCHEMA, [rows])}, build)
    good = [{"user": "a", "n": 1}, {"user": "flaky", "n": 2}, {"user": "b", "n": 8}, {"user": "b", "n": 8}]
    same(ran.rows, [one | {"credit": 10.0 * int(str(one["n"]))} for one in good])
    assert sorted(time for batch in ran.times for time in batch if time) == [at("1"), at("2"), at("8"), at("8")]
    reasons = {json.loads(failed["value"])["user"]: failed["reason"] for failed in ran.side_outputs[Tag.FAILED]}
    odd = reasons.pop("odd")
    assert reasons == {
        "down": "credit failed after 2 attempts: ConnectionError: nobody answers",
        "refused": "credit refused: no such user",
        "slow": "credit failed after 2 attempts: no answer within 300 ms",
        "nothing": "credit the response lacks credit",
        "keyless": "credit the idempotency key is null",
    }
    assert odd.startswith("credit the response does not match the result schema: ")
    assert {(failed["source"], failed["value"]) for failed in ran.side_outputs[Tag.FAILED]} >= {("credit", '{"user":"down","n":3}')}
    assert len(ran.side_outputs[Tag.QUARANTINED]) == 1
    made = calls(notes)
    # Two rows of a key share a call; rows that are not data cause none.
    assert {key: made.count(key) for key in made} == {
        "a-1": 1, "flaky-2": 2, "down-3": 2, "refused-4": 1, "slow-5": 2, "odd-6": 1, "nothing-7": 1, "b-8": 1,
    }  # fmt: skip
    assert ran.events[-1]["totalTags"] == {Tag.DATA: 4, Tag.FAILED: 6, Tag.QUARANTINED: 1}


@pytest.mark.on_executors("calls", "journal")
def test_a_task_that_fails_after_its_calls_does_not_make_them_again(surroundings: Surroundings) -> None:
    notes, failed = str(surroundings.folder / "notes"), str(surroundings.folder / "failed")
    name = f"failed-{uuid.uuid4().hex[:8]}"

    def build(streams: Mapping[str, Stream]) -> Stream:
        asked = call(streams["in"], Outside(notes), name="credit", key="concat_ws('-', user, n)", result="credit DOUBLE, asked INT")
        return asked.transform(lambda frame: frame.mapInArrow(FailsOnce(failed), frame.schema))

    batches = [[row("1", user="a", n=1), row("2", user="flaky", n=2)]]
    if str(surroundings.session.sparkContext.master).startswith("local"):
        # In the driver's process the query fails, and the micro-batch runs again; on executors Spark repeats the task.
        with pytest.raises(PythonException, match="a step after the calls"):
            run(surroundings, {"in": Input(SCHEMA, batches, timed=False)}, build, name=name)
        batches = []
    ran = run(surroundings, {"in": Input(SCHEMA, batches, timed=False)}, build, name=name)
    same(ran.rows, [{"user": "a", "n": 1, "credit": 10.0, "asked": 1}, {"user": "flaky", "n": 2, "credit": 20.0, "asked": 2}])
    assert sorted(calls(notes)) == ["a-1", "flaky-2", "flaky-2"]


def test_calls_of_a_plain_function_run_at_once_and_the_rows_keep_their_order(surroundings: Surroundings) -> None:
    batches = [[row("1", user="a", n=n) for n in range(3)]]

    def build(streams: Mapping[str, Stream]) -> Stream:
        # A record of Kafka's is a key: its topic, partition and offset.
        place = "named_struct('topic', 'clicks', 'partition', 4, 'offset', 100L + n)"
        return call(streams["in"], plain, name="twice", key=place, result="twice INT, key STRING")

    ran = run(surroundings, {"in": Input(SCHEMA, batches)}, build)
    assert [(one["n"], one["twice"], one["key"]) for one in ran.rows] == [
        (0, 0, "clicks-4-100"),
        (1, 2, "clicks-4-101"),
        (2, 4, "clicks-4-102"),
    ]


def test_an_invalid_declaration_of_a_call_is_rejected_with_its_place(surroundings: Surroundings) -> None:
    session = surroundings.session
    frame = session.createDataFrame([], f"user STRING, n INT, {TIME} timestamp")
    stream = Stream(frame, timed=False)
    for given, message in (
        ({"name": "No Name"}, "expected lower-case letters"),
        ({"result": "n INT"}, "the row already has n"),
        ({"capacity": 0}, "capacity = 0: must be at least 1"),
        ({"timeout": "10"}, 'timeout = "10"'),
        ({"key": "struct(n)"}, "a record with topic, partition, offset"),
    ):
        arguments = {"name": "credit", "key": "n", "result": "credit INT"} | given
        with pytest.raises(ValueError, match=message):
            call(stream, plain, **arguments)
