"""Calls without Spark: concurrency, retries, and calls that hang."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import Any

import pytest

from penstock.jobs.blocks.calls.attempts import LONGEST_PAUSE_MS, Attempts, CallRefused, Function, Outcome, Policy, pause_s

POLICY = Policy(capacity=10, timeout_ms=5_000, attempts=3, backoff_ms=1)


def _ended(attempts: Attempts, count: int) -> dict[str, Outcome]:
    ended: dict[str, Outcome] = {}
    while len(ended) < count:
        ended_calls = attempts.next(30)
        assert ended_calls is not None, "a call does not end"
        ended[ended_calls[0]] = ended_calls[1]
    return ended


def _all(function: Function, keys: str, policy: Policy = POLICY) -> dict[str, Outcome]:
    with Attempts(function, policy) as attempts:
        attempts.submit([(key, {"key": key}) for key in keys])
        return _ended(attempts, len(keys))


class Meeting:
    """Blocks until a number of calls are in flight, and records the maximum."""

    def __init__(self, wanted: int) -> None:
        self.wanted, self.here, self.most = wanted, 0, 0
        self.full = asyncio.Event()

    async def __call__(self, row: dict[str, Any], key: str) -> str:
        self.here += 1
        self.most = max(self.most, self.here)
        if self.here == self.wanted:
            self.full.set()
        await self.full.wait()
        await asyncio.sleep(0)
        self.here -= 1
        return key.upper()


def test_as_many_calls_are_in_flight_as_the_capacity_allows_and_no_more() -> None:
    meeting = Meeting(3)
    ended = _all(meeting, "abcdefgh", Policy(3, 5_000, 1, 1))
    assert ended == {key: Outcome(answer=key.upper()) for key in "abcdefgh"}
    assert meeting.most == 3


def test_plain_functions_run_at_once_too() -> None:
    barrier = threading.Barrier(4, timeout=30)
    ended = _all(lambda row, key: barrier.wait() >= 0, "abcd", Policy(4, 30_000, 1, 1))
    assert all(outcome.answer is True for outcome in ended.values())


def test_a_call_is_tried_again_with_the_same_key_until_it_has_failed() -> None:
    seen: list[tuple[str, str]] = []

    async def function(row: dict[str, Any], key: str) -> str:
        seen.append((row.pop("key"), key))
        if key == "b" and seen.count(("b", "b")) == 2:
            return "at last"
        raise ConnectionError("away\nfor now")

    ended = _all(function, "ab")
    assert ended == {"a": Outcome(reason="failed after 3 attempts: ConnectionError: away"), "b": Outcome(answer="at last")}
    # Changes of a function to its row do not reach the next attempt.
    assert sorted(seen) == [("a", "a")] * 3 + [("b", "b")] * 2


def test_a_rejected_call_is_not_retried() -> None:
    seen: list[str] = []

    def function(row: dict[str, Any], key: str) -> None:
        seen.append(key)
        raise CallRefused("no such user")

    assert _all(function, "a") == {"a": Outcome(reason="refused: no such user")}
    assert seen == ["a"]


@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_call_that_hangs_ends_with_its_time(asynchronous: bool) -> None:
    released = threading.Event()

    async def hangs(row: dict[str, Any], key: str) -> None:
        await asyncio.Event().wait()

    def blocks(row: dict[str, Any], key: str) -> None:
        released.wait(30)

    ended = _all(hangs if asynchronous else blocks, "a", Policy(10, 50, 2, 1))
    released.set()
    assert ended == {"a": Outcome(reason="failed after 2 attempts: no answer within 50 ms")}


class Client:
    """Records when it is opened and closed."""

    def __init__(self) -> None:
        self.story: list[str] = []

    async def __aenter__(self) -> Client:
        self.story.append("opened")
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.story.append("closed")

    async def __call__(self, row: dict[str, Any], key: str) -> int:
        self.story.append(key)
        if key == "hang":
            await asyncio.Event().wait()
        return 1


def test_a_client_is_opened_before_the_first_call_and_closed_after_the_last() -> None:
    client = Client()
    assert list(_all(client, "a")) == ["a"]
    assert client.story == ["opened", "a", "closed"]
    unused = Client()
    with Attempts(unused, POLICY):
        pass
    assert unused.story == []


def test_what_is_under_way_when_a_task_fails_is_broken_off() -> None:
    client = Client()
    with pytest.raises(RuntimeError, match="the task"), Attempts(client, POLICY) as attempts:
        attempts.submit([("hang", {}), ("a", {})])
        _ended(attempts, 1)
        raise RuntimeError("the task")
    assert client.story == ["opened", "hang", "a", "closed"]


def test_a_pause_doubles_and_ends_growing() -> None:
    assert 0.1 <= pause_s(200, 1) <= 0.2
    assert 0.4 <= pause_s(200, 3) <= 0.8
    assert pause_s(200, 1_000) <= LONGEST_PAUSE_MS / 1000
