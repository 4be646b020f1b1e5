"""The backlog that a profiled job reads: its input over and over, each time with later event times."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from penstock.jobs.driver.root_cause import OwnCode
from penstock.jobs.local.recording import Record
from penstock.jobs.spec import EventTime, FromKafka, SpecFile
from penstock.scripts.feeding.event_times import time_ms, written_at
from penstock.scripts.feeding.feeds import coded, declared, sources_of_topics
from penstock.scripts.installation.app_packages import InstalledPackages
from penstock.scripts.local import input as local_input
from penstock.scripts.profiling.errors import UnusableInput
from penstock.scripts.progress import Steps

# Ours: more of an endless generator brings no other mix of records.
MOST_BASE_RECORDS = 50_000
_MADE_EVERY_MS = 10
# Between the repetitions of records that all have the same time, or none.
_LEAST_SPAN_MS = 1_000.0
# How far back the first repetition is placed: event times must not be ahead of the clock, which a source may not accept.
_REPETITIONS_BACK = 5_000


@dataclass(frozen=True)
class TopicInput:
    """The records of a topic that are repeated.

    Args:
        topic: its name.
        time: how the source reads event time; None: it has none.
        base: in the order in which they are written.
    """

    topic: str
    time: EventTime | None
    base: tuple[Record, ...]


def inputs(
    spec: SpecFile,
    app_path: Sequence[Path],
    packages: InstalledPackages,
    files: Mapping[str, Path],
    partitions: int,
    steps: Steps,
) -> list[TopicInput]:
    """The records for each topic that the job reads: of a file, of the spec's local input, or made from the app's schemas.

    Args:
        spec: of the job.
        app_path: folders of its app, besides that of the spec.
        packages: of its app.
        files: topic -> file with a record in each line; with the key "" for a job of one topic.
        partitions: of each topic.
        steps: shows that Spark is started, which reads the schemas of an app.

    Raises:
        PenstockError: PROF-005, FEED-002, RUN-013, USE-001 and what is wrong with the app.
    """
    sources = sources_of_topics(spec, lambda pattern: [])
    folders = (spec.path.parent.resolve(), *app_path)
    generators = local_input.generators(spec, folders)
    found = {topic: _of_file(path) for topic, path in _named(files, list(sources)).items()}
    for topic in sources:
        if topic not in found and topic in generators:
            records = coded(generators[topic], spec, topic, OwnCode(folders))(partitions)
            found[topic] = tuple(islice((record for record in records if not record.flush), MOST_BASE_RECORDS))
    if rest := [topic for topic in sources if topic not in found]:
        fields = declared(spec, app_path, packages, steps)
        found |= {topic: tuple(_made(*sources[topic], fields)) for topic in rest}
    for topic, records in found.items():
        if not records:
            raise UnusableInput(
                path=f"topic {topic}", given="0 records", need="at least one record", fix="name a file with records: --input"
            )
    return [TopicInput(topic, sources[topic][1].time, found[topic]) for topic in sources]


class Backlog:
    """The inputs without an end: each repetition begins where the one before ended, in event time, at the same time for all topics.

    Args:
        given: what is repeated. Records whose value has no event time, as a generator may intend, are repeated as they are.
        now: event times come up to here after thousands of repetitions.
    """

    def __init__(self, given: Sequence[TopicInput], now: datetime) -> None:
        self._given = given
        self._values = {one.topic: [_parsed(record, one.time) for record in one.base] for one in given}
        times = [at for values in self._values.values() for _, at in values if at is not None]
        self._first_ms, last_ms = (min(times), max(times)) if times else (0.0, 0.0)
        self._span_ms = max(_LEAST_SPAN_MS, (last_ms - self._first_ms) * (1 + 1 / max(1, len(times) - 1)))
        self._start_ms = now.timestamp() * 1000 - _REPETITIONS_BACK * self._span_ms

    @property
    def records(self) -> int:
        """Of one repetition, of all topics."""
        return sum(len(one.base) for one in self._given)

    @property
    def mean_bytes(self) -> float:
        """Of a record's value and key."""
        sizes = [len(record.value or b"") + len(record.key or b"") for one in self._given for record in one.base]
        return sum(sizes) / len(sizes)

    def repeated(self, given: TopicInput, repetitions: range) -> Iterator[Record]:
        """The records of a topic in some repetitions, which are counted from 0."""
        for repetition in repetitions:
            shift_ms = self._start_ms + repetition * self._span_ms - self._first_ms
            for record, (value, at) in zip(given.base, self._values[given.topic], strict=True):
                yield _at(record, value, None if at is None else at + shift_ms, given.time)


def _at(record: Record, value: Mapping[str, Any] | None, at_ms: float | None, time: EventTime | None) -> Record:
    if at_ms is None:
        return record
    if value is None or time is None or time.field is None:
        return replace(record, timestamp_ms=int(at_ms))
    written = written_at(time.format, datetime.fromtimestamp(at_ms / 1000, UTC))
    text = str(written) if isinstance(value[time.field], str) else written
    return replace(record, value=json.dumps({**value, time.field: text}, ensure_ascii=False).encode())


def _parsed(record: Record, time: EventTime | None) -> tuple[Mapping[str, Any] | None, float | None]:
    """The value with its event time in epoch milliseconds; of a source by the brokers' time that timestamp alone."""
    if time is None or record.value is None:
        return None, None
    if time.field is None:
        return None, None if record.timestamp_ms is None else float(record.timestamp_ms)
    try:
        value = json.loads(record.value)
    except ValueError:
        return None, None
    at = time_ms(value.get(time.field), time.format) if isinstance(value, dict) else None
    return (value, at) if at is not None else (None, None)


def _named(files: Mapping[str, Path], topics: Sequence[str]) -> dict[str, Path]:
    """Topic -> file.

    Raises:
        UnusableInput: PROF-005, the file is for no topic of the job, or it is not said for which.
    """
    known = ", ".join(topics)
    for topic in files:
        if topic and topic not in topics:
            raise UnusableInput(
                path="--input", given=f"topic {topic}", need=f"a topic that the job reads: {known}", fix="correct the topic"
            )
        if not topic and len(topics) > 1:
            need = f"TOPIC=FILE: the job reads {known}"
            raise UnusableInput(path="--input", given=str(files[topic]), need=need, fix="name the topic")
    return {topic or topics[0]: path for topic, path in files.items()}


def _of_file(path: Path) -> tuple[Record, ...]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        need = f"a file with a record in each line; {error.strerror}"
        raise UnusableInput(path="--input", given=str(path), need=need, fix="check the name") from None
    records = tuple(Record(line) for line in lines if line.strip())
    if not records:
        raise UnusableInput(path="--input", given=f"{path}, without a line", need="a record in each line", fix="name a file with records")
    return records


def _made(name: str, source: FromKafka, fields: Mapping[str, Any]) -> Iterator[Record]:
    # PySpark takes long to import, and local input needs none.
    from penstock.scripts.feeding.errors import NothingToFeed
    from penstock.scripts.feeding.made_records import RecordMaker

    if name not in fields:
        raise NothingToFeed(path=f"spec.sources.{name}", need="a source that the app reads, or --input", fix="call job.source in the app")
    maker, at = RecordMaker(name, source, fields[name], Random(0)), datetime.now(UTC)
    for number in range(MOST_BASE_RECORDS):
        yield maker.record(at + timedelta(milliseconds=number * _MADE_EVERY_MS))
