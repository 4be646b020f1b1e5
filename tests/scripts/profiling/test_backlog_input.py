from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from penstock.jobs.local.recording import Record
from penstock.jobs.spec import EventTime, load
from penstock.scripts.feeding.event_times import time_ms
from penstock.scripts.installation.app_packages import InstalledPackages
from penstock.scripts.profiling.backlog_input import Backlog, TopicInput, inputs
from penstock.scripts.profiling.errors import UnusableInput
from penstock.scripts.progress import Steps

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
ISO = EventTime.model_validate({"field": "at", "outOfOrderness": "10s"})
SPEC = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec:
  app: app
  parallelism: 1
  executor: {slots: 1, memory: 2g}
  sources:
    a: {kafka: {topic: a}, time: {field: at, outOfOrderness: 10s}}
    b: {kafka: {topic: b}, time: {field: at, outOfOrderness: 10s}}
  sinks: {out: {files: {path: clicks}}}
  local: {input: {b: b.jsonl}}
"""


def record(at: str | int, **more: object) -> Record:
    return Record(json.dumps({"at": at, **more}).encode(), b"key")


def times(records: list[Record], form: str = "iso-8601") -> list[float]:
    found = [time_ms(json.loads(one.value or b"")["at"], form) for one in records]
    return [at for at in found if at is not None]


def test_each_repetition_begins_where_the_last_ended_and_none_is_ahead_of_the_clock() -> None:
    base = tuple(record(f"2025-04-05T10:00:{second:02d}Z", user=second) for second in (0, 10, 20))
    given = TopicInput("clicks", ISO, base)
    repeated = list(Backlog([given], NOW).repeated(given, range(3)))
    found = times(repeated)
    assert len(found) == 9
    # Thirty seconds each: the pause between two records is one between two repetitions, too.
    assert [round(after - before) for before, after in pairwise(found)] == [10_000] * 8
    last = next(iter(Backlog([given], NOW).repeated(given, range(4_999, 5_000))))
    assert times([last])[0] < NOW.timestamp() * 1000
    assert [json.loads(one.value or b"")["user"] for one in repeated[:3]] == [0, 10, 20]
    assert {one.key for one in repeated} == {b"key"}


def test_topics_are_repeated_at_the_same_times() -> None:
    first = TopicInput("a", ISO, (record("2025-04-05T10:00:00Z"), record("2025-04-05T10:01:00Z")))
    second = TopicInput("b", ISO, (record("2025-04-05T10:00:30Z"),))
    backlog = Backlog([first, second], NOW)
    (a, _), (b,) = (list(backlog.repeated(one, range(7, 8))) for one in (first, second))
    assert times([b])[0] - times([a])[0] == pytest.approx(30_000, abs=2)
    assert (backlog.records, backlog.mean_bytes) == (3, len(a.value or b"") + 3 - 4)


@pytest.mark.parametrize("form", ["epoch-seconds", "epoch-millis", "epoch-micros"])
def test_numbers_stay_numbers_and_text_stays_text(form: str) -> None:
    ticks = {"epoch-seconds": 1, "epoch-millis": 1_000, "epoch-micros": 1_000_000}[form]
    time = EventTime.model_validate({"field": "at", "format": form, "outOfOrderness": "10s"})
    given = TopicInput("clicks", time, (record(1_743_847_200 * ticks), record(str(1_743_847_260 * ticks))))
    first, second, third, _ = Backlog([given], NOW).repeated(given, range(2))
    number, text = (json.loads(one.value or b"")["at"] for one in (first, second))
    assert isinstance(number, int) and isinstance(text, str)
    assert times([third], form)[0] > times([second], form)[0] > times([first], form)[0]


def test_records_without_a_time_are_repeated_as_they_are_and_brokers_timestamps_move() -> None:
    broken = TopicInput("clicks", ISO, (Record(b"not JSON"), Record(b"{}"), Record(None, b"k")))
    assert list(Backlog([broken], NOW).repeated(broken, range(2))) == list(broken.base) * 2
    ingestion = EventTime.model_validate({"kind": "ingestion"})
    given = TopicInput("lines", ingestion, (Record(b"a", timestamp_ms=1_000), Record(b"b", timestamp_ms=5_000)))
    stamps = [one.timestamp_ms or 0 for one in Backlog([given], NOW).repeated(given, range(2))]
    assert [after - before for before, after in pairwise(stamps)] == [4_000] * 3


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text("")
    (tmp_path / "b.jsonl").write_text('{"at": "2025-04-05T10:00:00Z"}\n\n{"at": "2025-04-05T10:00:01Z"}\n')
    path = tmp_path / "clicks.yaml"
    path.write_text(SPEC)
    return path


def read(spec: Path, **files: str) -> dict[str, int]:
    named = {topic.strip("_"): spec.with_name(file) for topic, file in files.items()}
    return {one.topic: len(one.base) for one in inputs(load(spec), [], InstalledPackages(), named, 2, Steps())}


def test_a_file_goes_before_the_local_input_of_the_spec(spec: Path) -> None:
    spec.with_name("more.jsonl").write_text("1\n2\n3")
    assert read(spec, a="more.jsonl") == {"a": 3, "b": 2}
    assert read(spec, a="more.jsonl", b="more.jsonl") == {"a": 3, "b": 3}


@pytest.mark.parametrize(
    ("files", "need"),
    [
        ({"a": "nowhere.jsonl"}, "a file with a record in each line; No such file or directory"),
        ({"a": "empty.jsonl"}, "a record in each line"),
        ({"c": "more.jsonl"}, "a topic that the job reads: a, b"),
        ({"_": "more.jsonl"}, "TOPIC=FILE: the job reads a, b"),
    ],
)
def test_an_input_without_records_or_of_no_topic_is_an_error(spec: Path, files: dict[str, str], need: str) -> None:
    spec.with_name("more.jsonl").write_text("1\n")
    spec.with_name("empty.jsonl").write_text("\n\n")
    with pytest.raises(UnusableInput) as caught:
        read(spec, **files)
    assert caught.value.need == need
