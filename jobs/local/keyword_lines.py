"""Input and expectation of keyword_lines: three text files, and the lines that contain the word in plain Python."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator

from penstock.jobs.local.recording import Expectation, Record, Recording

PATH = "keyword-lines-input"
KEYWORD = "keyword"
LINES = 3_000
_OTHERS = ("driver", "executor", "partition", "shuffle", "Keyword", "key word")


def files() -> Iterator[Record]:
    """Lines of text; one in four contains the word."""
    random_ = random.Random(13)
    for number in range(LINES):
        words = [random_.choice(_OTHERS) for _ in range(random_.randint(2, 8))]
        if random_.random() < 0.25:
            words.insert(random_.randrange(len(words)), KEYWORD)
        yield Record(f"{number} {' '.join(words)}".encode())


def expect(recording: Recording) -> Expectation:
    """The lines that contain the word, each once."""
    texts = [(record.value or b"").decode() for record in recording.records[PATH]]
    kept = [text for text in texts if KEYWORD in text]
    return Expectation(rows=len(kept), exact=Counter(json.dumps({"line": text}) for text in kept))
