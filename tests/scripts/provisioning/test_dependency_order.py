from __future__ import annotations

import os
import signal
import threading

import pytest

from penstock.scripts.provisioning.dependency_order import in_order, reverse
from tests.main_thread import until_it_waits

# For what nothing here takes as long as.
LIMIT_S = 30
AFTER = {"charts": ("cluster", "kafka"), "cluster": ("network",), "kafka": ("network",), "network": (), "registry": ()}


def test_each_comes_after_those_that_it_depends_on() -> None:
    done: list[str] = []

    def do(name: str) -> str:
        done.append(name)
        return name.upper()

    assert in_order(AFTER, do) == {name: name.upper() for name in AFTER}
    assert sorted(done) == sorted(AFTER)
    assert all(done.index(before) < done.index(name) for name, befores in AFTER.items() for before in befores)


def test_those_that_do_not_wait_for_each_other_run_at_the_same_time() -> None:
    # Each waits for the other one to begin; one after the other, they would break the barrier.
    both = threading.Barrier(2, timeout=30)
    in_order(AFTER, lambda name: both.wait() if name in ("cluster", "kafka") else None)


def test_one_thread_is_enough() -> None:
    assert in_order(AFTER, str.upper, at_a_time=1)["charts"] == "CHARTS"


def test_what_depends_on_a_failure_is_left_out_and_the_rest_ends() -> None:
    done: list[str] = []

    def do(name: str) -> None:
        if name == "cluster":
            raise ValueError("no cluster")
        done.append(name)

    with pytest.raises(ValueError, match="no cluster"):
        in_order(AFTER, do)
    assert sorted(done) == ["kafka", "network", "registry"]


@pytest.mark.parametrize("wakes", [True, False], ids=["that wakes the main thread", "that does not"])
def test_an_interrupt_ends_the_calls_that_run_before_it_is_passed_on(wakes: bool) -> None:
    runs, asked_to_end, ended = threading.Event(), threading.Event(), threading.Event()

    def do(name: str) -> None:
        runs.set()
        assert asked_to_end.wait(LIMIT_S)
        ended.set()

    def press_ctrl_c() -> None:
        assert runs.wait(LIMIT_S)
        until_it_waits()
        # In a thread that does not wait it is like one that arrives just before the main thread waits.
        to = threading.main_thread() if wakes else threading.current_thread()
        signal.pthread_kill(to.ident or 0, signal.SIGINT)

    def interrupt() -> None:
        asked_to_end.set()
        assert ended.wait(LIMIT_S)

    presser = threading.Thread(target=press_ctrl_c)
    presser.start()
    with pytest.raises(KeyboardInterrupt):
        in_order({"network": ()}, do, interrupt=interrupt)
    presser.join()
    assert ended.is_set()


def test_whatever_ends_the_wait_for_them_the_calls_that_run_are_ended() -> None:
    """As the limit of a test does."""
    asked_to_end = threading.Event()

    def do(name: str) -> None:
        os.kill(os.getpid(), signal.SIGUSR1)
        assert asked_to_end.wait(LIMIT_S)

    class TookTooLong(BaseException):
        pass

    def end(*_: object) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGUSR1, end)
    try:
        with pytest.raises(TookTooLong):
            in_order({"network": ()}, do, interrupt=asked_to_end.set)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert asked_to_end.is_set()


def test_backwards_a_destroy() -> None:
    assert reverse(AFTER) == {"charts": (), "cluster": ("charts",), "kafka": ("charts",), "network": ("cluster", "kafka"), "registry": ()}
