"""Why records are in a side output: the most frequent reasons, each with an example."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.scripts.local import kafka_topics

MOST = 3
_SHOWN = 100


@dataclass(frozen=True)
class Reason:
    """A reason for which records are in a side output.

    Args:
        text: without what differs from record to record, which follows a colon.
        records: how many have it.
        example: one of them, for people.
    """

    text: str
    records: int
    example: str

    def __str__(self) -> str:
        return f"{self.records:,} x {self.text}, for example {self.example}"


def of_topic(address: str, topic: str) -> list[Reason]:
    """The most frequent reasons in a side output's topic.

    Args:
        address: of the broker.
        topic: of the side output.
    """
    # A record that a replay wrote twice has the same key; rows without a record have none.
    by_key = {message.key() or number: message.value() for number, message in enumerate(kafka_topics.read(address, topic))}
    return most_frequent(json.loads(value or b"{}") for value in by_key.values())


def most_frequent(records: Iterable[Mapping[str, Any]]) -> list[Reason]:
    """The most frequent reasons, the most frequent first; of those as frequent in the order of the records.

    Args:
        records: side-output records.
    """
    counted: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for record in records:
        text = str(record.get("reason", "no reason")).partition(": ")[0]
        counted[text] += 1
        examples.setdefault(text, _example(record))
    return [Reason(text, count, examples[text]) for text, count in counted.most_common(MOST)]


def _example(record: Mapping[str, Any]) -> str:
    value = str(record.get("value") or record.get("valueBase64") or record.get("key") or "a record without a value")
    # As on one line of a terminal.
    text = json.dumps(value, ensure_ascii=False)[1:-1] if "\n" in value else value
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    return f"{record['topic']}-{record['partition']}-{record['offset']}: {shown}" if "offset" in record else shown
