"""Input and expectation of word_count: lines of a small vocabulary, counted in plain Python."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from penstock.jobs.local.recording import Expectation, Record, Recording

LINES = 5_000
SOCKET_LINES = 500
_WORDS = ("Flow", "gate", "turbine", "water", "pipe", "Valve", "head", "surge", "it's", "x_1", "2025")
_ENDS = (".", "!", ",", "", " --")


def lines() -> Iterator[Record]:
    """Lines of one to twelve words; every hundredth is empty, one in a thousand is not UTF-8."""
    random_ = random.Random(11)
    for number in range(LINES):
        if random_.random() < 0.001:
            yield Record(b"\xff\xfe broken " + str(number).encode())
        else:
            yield Record(_line(random_, number).encode())


def socket_lines() -> list[str]:
    """Input of the socket: fewer lines of the same kind."""
    random_ = random.Random(12)
    return [_line(random_, number) for number in range(SOCKET_LINES)]


def expect(recording: Recording) -> Expectation:
    """The last count of each word in the topic's valid lines."""
    texts = [record.value for record in recording.records["lines"]]
    readable = [text.decode() for text in texts if text is not None and _is_utf8(text)]
    return _expectation(readable, quarantined=len(texts) - len(readable))


def expect_socket(recording: Recording) -> Expectation:
    """The same for the lines of the socket."""
    return _expectation(socket_lines(), quarantined=0)


def _expectation(texts: Iterable[str], quarantined: int) -> Expectation:
    counts = Counter(word for text in texts for word in re.split(r"[^a-z0-9_]+", text.lower()) if word)
    exact = Counter(json.dumps({"word": word, "count": count}, sort_keys=True) for word, count in counts.items())
    return Expectation(rows=len(counts), quarantined=quarantined, exact=exact, last_by=("word",))


def _line(random_: random.Random, number: int) -> str:
    if number % 100 == 0:
        return ""
    return " ".join(random_.choice(_WORDS) for _ in range(random_.randint(1, 12))) + random_.choice(_ENDS)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
