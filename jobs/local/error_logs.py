"""Input and expectation of error_logs: a trading service's log, and its errors in plain Python."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator

from penstock.jobs.local.recording import Expectation, Record, Recording

TOPIC = "live-financial-logs"
LINES = 20_000
_LEVELS = ("info",) * 80 + ("warn",) * 12 + ("error",) * 6 + ("Error",) * 2
_TEXTS = ("order {n} accepted", "quote {n} is stale", "settlement of {n} failed", "risk limit of desk {n} reached", "no error in batch {n}")


def logs() -> Iterator[Record]:
    """Lines as written by the service; two in ten thousand are truncated within a character."""
    random_ = random.Random(14)
    for number in range(LINES):
        text = f"2025-04-05T12:{number // 400:02d}:00Z {random_.choice(_LEVELS)} {random_.choice(_TEXTS).format(n=number)} straße"
        raw = text.encode()
        yield Record(raw[:-2] if random_.random() < 0.0002 else raw)


def expect(recording: Recording) -> Expectation:
    """The lines that contain ERROR, in Unicode upper case."""
    texts = [record.value or b"" for record in recording.records[TOPIC]]
    readable = [text for text in map(_decoded, texts) if text is not None]
    kept = [text.upper() for text in readable if "ERROR" in text.upper()]
    exact = Counter(json.dumps({"line": text}) for text in kept)
    return Expectation(rows=len(kept), quarantined=len(texts) - len(readable), exact=exact)


def _decoded(text: bytes) -> str | None:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None
