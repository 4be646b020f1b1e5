"""Changed sinks and output modes: what is said of each, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from penstock.jobs.driver.sink_changes import sink_changes
from penstock.jobs.driver.state_changes import state_changes
from penstock.jobs.spec import Sink
from penstock.jobs.storage.query_record import QueryRecord, SinkRecord

_SINK: TypeAdapter[Sink] = TypeAdapter(Sink)
FILES = {"files": {"path": "clicks"}}
TOPIC = {"kafka": {"topic": "clicks"}}
EXACTLY_ONCE = {"kafka": {"topic": "clicks", "guarantee": "exactly-once"}}
CRASHED = (
    "a driver that is stopped closes its files, and one that has crashed leaves unpublished what was open: let it run and stop it first"
)


def _record(*operators: str, mode: Any = "append", **sinks: dict[str, Any]) -> QueryRecord:
    written = [SinkRecord.of(name, _SINK.validate_python(sink)) for name, sink in sinks.items()]
    return QueryRecord.of(["a"], operators, sinks=written, output_mode=mode)


@pytest.mark.parametrize(
    ("sink", "kind", "place", "guarantee"),
    [
        (FILES, "files", "clicks", "exactly-once"),
        (TOPIC, "topic", "clicks", "at-least-once"),
        (EXACTLY_ONCE, "topic", "clicks", "exactly-once"),
        ({"postgres": {"connection": "shop", "table": "t", "key": ["k"]}}, "table", "shop t", None),
        ({"redis": {"connection": "cache", "key": ["k"], "prefix": "p:"}}, "hashes", "cache p:", None),
        ({"webhook": {"connection": "hook"}}, "endpoint", "hook", "at-least-once"),
        ({"function": {"name": "store"}}, "function", "store", None),
        ({"console": {}}, "console", "", "at-least-once"),
    ],
)
def test_each_kind_is_recorded_with_its_place(sink: dict[str, Any], kind: str, place: str, guarantee: str | None) -> None:
    assert SinkRecord.of("out", _SINK.validate_python(sink)) == SinkRecord.model_validate(
        {"name": "out", "kind": kind, "place": place, "guarantee": guarantee}
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (TOPIC, TOPIC, []),
        # How it is written is no other place.
        (FILES, {"files": {"path": "clicks", "format": "parquet"}}, []),
        (
            TOPIC,
            {"kafka": {"topic": "views"}},
            ["sink out writes to topic views instead of topic clicks from the next micro-batch on; what is written stays where it is"],
        ),
        (
            FILES,
            {"files": {"path": "views"}},
            [
                "sink out writes to files views instead of files clicks from the next micro-batch on, also the rows of files that are still"
                " open; what is written stays where it is"
            ],
        ),
        (
            TOPIC,
            EXACTLY_ONCE,
            [
                "sink out is exactly-once from the next micro-batch on, whose marks start anew: if a crash has interrupted one before, its"
                " rows may be there twice; readers need isolation.level=read_committed"
            ],
        ),
        (EXACTLY_ONCE, TOPIC, ["sink out is at-least-once from the next micro-batch on"]),
        (FILES, TOPIC, [f"sink out was files clicks and is topic clicks from the next micro-batch on; {CRASHED}"]),
    ],
)
def test_a_changed_sink_is_said_with_what_it_means(old: dict[str, Any], new: dict[str, Any], said: list[str]) -> None:
    assert list(sink_changes(_record(out=old), _record(out=new))) == said


def test_sinks_that_are_new_and_gone_are_said() -> None:
    said = list(sink_changes(_record(out=FILES, late=TOPIC), _record(late=TOPIC, copy=TOPIC)))
    assert said == [
        "sink copy is new: topic clicks gets rows from the next micro-batch on",
        f"sink out is gone: files clicks gets no more rows; {CRASHED}",
    ]


def test_a_record_of_an_earlier_release_is_read_and_not_compared() -> None:
    earlier = QueryRecord.model_validate_json('{"sources": ["a"], "operators": [{"id": 0, "name": "Aggregate"}]}')
    assert (earlier.sinks, earlier.output_mode) == (None, None)
    now = _record("Aggregate", mode="update", out=TOPIC)
    assert list(sink_changes(earlier, now)) == list(sink_changes(now, earlier)) == []
    assert list(state_changes({"": earlier}, {"": now})) == list(state_changes({"": now}, {"": earlier})) == []
    # And what this release records is what it reads.
    assert QueryRecord.model_validate_json(now.model_dump_json(by_alias=True)) == now


@pytest.mark.parametrize(
    ("operators", "old", "new", "refused"),
    [
        (("Aggregate",), "append", "update", True),
        (("Deduplicate", "Aggregate"), "append", "update", True),
        # Each group comes out once more, when it closes.
        (("Aggregate",), "update", "append", False),
        (("Aggregate",), "update", "update", False),
        # Nothing is held back until it closes.
        (("Deduplicate",), "append", "update", False),
        ((), "append", "update", False),
    ],
)
def test_groups_that_are_open_must_come_out(operators: tuple[str, ...], old: str, new: str, refused: bool) -> None:
    faults = list(state_changes({"": _record(*operators, mode=old)}, {"": _record(*operators, mode=new)}))
    assert [(fault.code, fault.path, fault.given) for fault in faults] == ([("JOB-094", "the query", "output mode update")] * refused)
