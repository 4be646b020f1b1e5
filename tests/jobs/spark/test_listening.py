"""Spark's listener in Python that is handed the progress as one text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from penstock.jobs.driver.listening import LightListener
from tests.jobs.spark.running import CHECKPOINTS, Surroundings


class _Own(LightListener):
    def __init__(self) -> None:
        self.seen: list[StreamingQueryProgress] = []

    def onQueryStarted(self, event: QueryStartedEvent) -> None: ...

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        self.seen.append(event.progress)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None: ...


class _PySparks(StreamingQueryListener):
    def __init__(self) -> None:
        self.seen: list[StreamingQueryProgress] = []

    def onQueryStarted(self, event: QueryStartedEvent) -> None: ...

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        self.seen.append(event.progress)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None: ...


def test_the_light_listener_is_told_what_pysparks_is(session: SparkSession, surroundings: Surroundings, tmp_path: Path) -> None:
    (tmp_path / "input").mkdir()
    (tmp_path / "input/lines.txt").write_text("one\ntwo\n")
    light, whole = _Own(), _PySparks()
    for listener in (light, whole):
        session.streams.addListener(listener)
    try:
        writer = session.readStream.text(f"file://{tmp_path}/input").writeStream.format("noop").trigger(availableNow=True)
        writer.option("checkpointLocation", f"s3a://{CHECKPOINTS}/{tmp_path.name}").start().awaitTermination()
        context: Any = session.sparkContext
        context._jsc.sc().listenerBus().waitUntilEmpty()
    finally:
        for listener in (light, whole):
            session.streams.removeListener(listener)
    assert light.seen
    assert [_told(progress) for progress in light.seen] == [_told(progress) for progress in whole.seen]


def _told(progress: StreamingQueryProgress) -> Sequence[object]:
    sources = [(one.description, json.loads(one.endOffset), one.numInputRows) for one in progress.sources]
    return progress.batchId, dict(progress.durationMs), progress.numInputRows, progress.sink.description, sources
