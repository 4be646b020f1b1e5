"""An independent implementation of windows in plain Python, for the oracles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def tumbling(time_ms: int, size_ms: int) -> Iterator[tuple[int, int]]:
    """The window of a time: start and end in epoch milliseconds."""
    start = time_ms // size_ms * size_ms
    yield start, start + size_ms


def sliding(time_ms: int, size_ms: int, every_ms: int) -> Iterator[tuple[int, int]]:
    """The windows of a time."""
    start = time_ms // every_ms * every_ms
    while start > time_ms - size_ms:
        yield start, start + size_ms
        start -= every_ms


def cumulative(time_ms: int, size_ms: int, step_ms: int) -> Iterator[tuple[int, int]]:
    """The windows of a time that begin at multiples of the size, each a step longer than the one before."""
    start = time_ms // size_ms * size_ms
    end = start + (time_ms - start) // step_ms * step_ms + step_ms
    while end <= start + size_ms:
        yield start, end
        end += step_ms


def sessions(events: Iterable[tuple[Key, int]], gap_ms: int) -> Iterator[tuple[Key, int, int, int]]:
    """Key, start, end and number of events of each session, from (key, time in epoch milliseconds)."""
    times: dict[Key, list[int]] = defaultdict(list)
    for key, time_ms in events:
        times[key].append(time_ms)
    for key, some in times.items():
        some.sort()
        first, count = some[0], 0
        last = first
        for time_ms in some:
            if time_ms >= last + gap_ms:
                yield key, first, last + gap_ms, count
                first, count = time_ms, 0
            last, count = time_ms, count + 1
        yield key, first, last + gap_ms, count


def written(time_ms: int) -> str:
    """A time as formatted by Spark's JSON writer in UTC."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
