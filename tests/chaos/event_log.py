"""What Spark's event log tells of executors, tasks and stages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class SparkEvents:
    """What happened in an application.

    Attributes:
        added_s: epoch seconds at which executors were added, in their order.
        removed: why executors were removed.
        repeated_stages: stage attempts after the first.
        speculative: tasks that were started a second time while the first ran.
    """

    added_s: list[float] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    repeated_stages: int = 0
    speculative: int = 0

    @classmethod
    def read(cls, folder: Path) -> SparkEvents:
        """Reads all logs of a folder, of drivers that have ended."""
        events = cls()
        for event in _events(folder):
            events._take(event)
        return events

    def _take(self, event: dict[str, Any]) -> None:
        match event["Event"]:
            case "SparkListenerExecutorAdded":
                self.added_s.append(event["Timestamp"] / 1000)
            case "SparkListenerExecutorRemoved":
                self.removed.append(event["Removed Reason"])
            case "SparkListenerStageSubmitted":
                self.repeated_stages += event["Stage Info"]["Stage Attempt ID"] > 0
            case "SparkListenerTaskEnd":
                self.speculative += event["Task Info"]["Speculative"]


def _events(folder: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(folder.iterdir()):
        for line in file.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)
