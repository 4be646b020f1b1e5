"""Runs calls until each has a response: concurrent, with timeouts, retried with exponential backoff."""

from __future__ import annotations

import asyncio
import inspect
import queue
import random
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any

Row = Mapping[str, Any]
Function = Callable[[dict[str, Any], str], Any]
# The maximum backoff.
LONGEST_PAUSE_MS = 30_000
_LONGEST_REASON = 500


class CallRefused(Exception):
    """Raised by a called function if a retry cannot help: the row goes to the side output at once."""


@dataclass(frozen=True)
class Policy:
    """How calls are made.

    Args:
        capacity: concurrent calls of a task.
        timeout_ms: of one attempt.
        attempts: before a call has failed.
        backoff_ms: the delay before the second attempt; it doubles with each attempt, and each is shortened by up to half at random.
    """

    capacity: int
    timeout_ms: int
    attempts: int
    backoff_ms: int


@dataclass(frozen=True)
class Outcome:
    """How a call ended: with a response, or with the reason why there is none."""

    answer: Any = None
    reason: str | None = None


class Attempts:
    """The calls of one task, in an event loop on a thread of their own.

    Args:
        function: the called function: a coroutine function, or a plain one, which gets a thread per concurrent call. An object may also
            be a context manager, asynchronous if its calls are: it is entered before the first call and left after the last one.
        policy: how calls are made.
    """

    def __init__(self, function: Function, policy: Policy) -> None:
        self._function = function
        self._policy = policy
        self._asynchronous = is_asynchronous(function)
        self._capacity = asyncio.Semaphore(policy.capacity)
        self._stack = AsyncExitStack()
        self._ended: queue.SimpleQueue[tuple[str, Outcome | BaseException]] = queue.SimpleQueue()
        # An event loop only has weak references to its tasks.
        self._under_way: set[asyncio.Task[Outcome]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Attempts:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._loop is None or self._thread is None:
            return
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        if self._pool:
            # A thread that hangs in a call cannot be ended; nobody waits for it.
            self._pool.shutdown(wait=False, cancel_futures=True)

    def submit(self, calls: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """Starts calls, each a key and a row, as soon as there is capacity."""
        if calls:
            loop = self._loop or self._open()
            loop.call_soon_threadsafe(self._begin, calls)

    def next(self, timeout_s: float | None) -> tuple[str, Outcome] | None:
        """The next completed call: its key and outcome; None after the timeout. Raises exceptions that are not a failure of a call."""
        try:
            key, outcome = self._ended.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if isinstance(outcome, BaseException):
            raise outcome
        return key, outcome

    def _begin(self, calls: Sequence[tuple[str, dict[str, Any]]]) -> None:
        for key, row in calls:
            task = asyncio.get_running_loop().create_task(self._call(key, row), name=key)
            self._under_way.add(task)
            task.add_done_callback(self._hear)

    def _hear(self, task: asyncio.Task[Outcome]) -> None:
        self._under_way.discard(task)
        error = RuntimeError("a call was cancelled") if task.cancelled() else task.exception()
        self._ended.put((task.get_name(), task.result() if error is None else error))

    def _open(self) -> asyncio.AbstractEventLoop:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        if not self._asynchronous:
            self._pool = ThreadPoolExecutor(self._policy.capacity)
        asyncio.run_coroutine_threadsafe(self._enter(), self._loop).result()
        return self._loop

    async def _enter(self) -> None:
        function: Any = self._function
        if hasattr(type(function), "__aenter__"):
            await self._stack.enter_async_context(function)
        elif hasattr(type(function), "__enter__"):
            self._stack.enter_context(function)

    async def _close(self) -> None:
        """Cancels outstanding calls, of which there are none unless the task failed."""
        others = list(self._under_way)
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._stack.aclose()

    async def _call(self, key: str, row: dict[str, Any]) -> Outcome:
        reason = ""
        async with self._capacity:
            for attempt in range(self._policy.attempts):
                if attempt:
                    await asyncio.sleep(pause_s(self._policy.backoff_ms, attempt))
                try:
                    async with asyncio.timeout(self._policy.timeout_ms / 1000):
                        return Outcome(answer=await self._begun(dict(row), key))
                except CallRefused as error:
                    return Outcome(reason=f"refused: {_first_line(error)}")
                except TimeoutError:
                    reason = f"no answer within {self._policy.timeout_ms} ms"
                except Exception as error:
                    reason = f"{type(error).__name__}: {_first_line(error)}"
        count = self._policy.attempts
        return Outcome(reason=f"failed after {count} attempt{'s' if count > 1 else ''}: {reason}"[:_LONGEST_REASON])

    def _begun(self, row: dict[str, Any], key: str) -> Awaitable[Any]:
        if self._asynchronous:
            answer: Awaitable[Any] = self._function(row, key)
            return answer
        return asyncio.get_running_loop().run_in_executor(self._pool, self._function, row, key)


def is_asynchronous(function: Function) -> bool:
    """Whether a function's calls must be awaited."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(type(function), "__call__", None))  # noqa: B004


def pause_s(backoff_ms: int, attempt: int) -> float:
    """The delay before an attempt.

    Args:
        backoff_ms: before the second attempt, in ms.
        attempt: its number; the first one is 0.
    """
    return float(min(backoff_ms * 2 ** (attempt - 1), LONGEST_PAUSE_MS) * random.uniform(0.5, 1) / 1000)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
