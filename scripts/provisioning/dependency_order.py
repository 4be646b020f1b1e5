"""Stacks in the order of their dependencies, those that do not wait for each other at the same time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

from penstock.scripts.process.waking import woken_by_signals

# Most of what Terraform takes is the provider's own waiting.
AT_A_TIME = 4

Done = TypeVar("Done")


def in_order(
    after: Mapping[str, Sequence[str]],
    do: Callable[[str], Done],
    *,
    at_a_time: int = AT_A_TIME,
    interrupt: Callable[[], None] = lambda: None,
) -> dict[str, Done]:
    """Does something with each stack, once it is done with those that it comes after.

    Args:
        after: stack -> the stacks that it comes after; no cycles.
        do: called with a stack, in a thread; a stack whose predecessor has failed is left out.
        at_a_time: number of threads.
        interrupt: called if this thread's wait is interrupted; ends the calls that run, waits for their end, and makes those to come fail.

    Returns:
        Stack -> result.

    Raises:
        Exception: the first that `do` raised, once the calls that ran have ended.
        KeyboardInterrupt: likewise.
    """
    futures: dict[str, Future[Done]] = {}

    def wait_and_do(name: str) -> Done:
        for other in after[name]:
            futures[other].result()
        return do(name)

    # Who waits for another holds a thread: those without anything to wait for are submitted first, and end in any case.
    names = sorted(after, key=lambda name: _depth(after, name))
    with woken_by_signals(), ThreadPoolExecutor(at_a_time) as pool:
        try:
            for name in names:
                futures[name] = pool.submit(wait_and_do, name)
            wait(futures.values())
        except BaseException:
            # Whatever ends this wait: the pool waits for the calls.
            interrupt()
            raise
        return {name: future.result() for name, future in futures.items()}


def reverse(after: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """The same order backwards, as for a destroy.

    Args:
        after: stack -> the stacks that it comes after.
    """
    return {name: tuple(other for other, needs in after.items() if name in needs) for name in after}


def _depth(after: Mapping[str, Sequence[str]], name: str) -> int:
    return 1 + max((_depth(after, other) for other in after[name]), default=0)
