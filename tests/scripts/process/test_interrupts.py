"""An interrupt ends a verb, wherever it arrives."""

from __future__ import annotations

import copyreg
import gc
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from penstock.scripts.process import interrupts
from tests.main_thread import until_it_waits

pytestmark = pytest.mark.fast
LONG_S = 30.0


class _Interrupted(type):
    """Of classes at which Ctrl-C arrives as somebody sets an attribute."""

    number = signal.SIGINT

    def __setattr__(cls, name: str, value: Any) -> None:
        signal.raise_signal(cls.number)


def _swallow(number: signal.Signals = signal.SIGINT) -> None:
    """The interrupt arrives in a library: the standard one, whose bare ``except`` takes it."""

    class Copied(metaclass=_Interrupted):
        pass

    type.__setattr__(_Interrupted, "number", number)
    copyreg._slotnames(Copied)  # type: ignore[attr-defined]


def _go_on() -> None:
    """As a verb does that has much to do."""
    threading.Event().wait(LONG_S)


def test_python_alone_loses_an_interrupt_that_arrives_in_a_bare_except() -> None:
    _swallow()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_that_a_library_swallows_is_raised_again(number: signal.Signals) -> None:
    with pytest.raises(KeyboardInterrupt), interrupts.heard():
        interrupts.end_in_order()
        _swallow(number)
        _go_on()
        pytest.fail("the interrupt was lost")


def test_an_interrupt_that_does_not_wake_the_main_thread_ends_its_wait() -> None:
    """One that arrives just before the wait does not, nor one in another thread, of which that can be made sure."""

    def press_ctrl_c() -> None:
        until_it_waits()
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    began_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt), interrupts.heard():
        threading.Thread(target=press_ctrl_c).start()
        _go_on()
    assert time.monotonic() - began_s < LONG_S, "the interrupt came once the wait was over"


def test_what_wakes_the_main_thread_leaves_nothing_behind() -> None:
    def left() -> tuple[object, ...]:
        descriptor = signal.set_wakeup_fd(-1)
        signal.set_wakeup_fd(descriptor)
        return descriptor, signal.getsignal(signal.SIGURG), threading.active_count(), len(list(Path("/dev/fd").iterdir()))

    before = left()
    with suppress(KeyboardInterrupt), interrupts.heard():
        signal.raise_signal(signal.SIGINT)
    assert left() == before


def test_it_is_raised_once_for_who_takes_it() -> None:
    def end() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            interrupts.taken()

    with interrupts.heard():
        end()
        gc.collect()


def test_while_what_runs_is_ended_it_does_not_come_again_and_a_second_one_does() -> None:
    ended: list[str] = []
    with pytest.raises(KeyboardInterrupt), interrupts.heard():
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            gc.collect()
            ended.append("what runs")
            try:
                signal.raise_signal(signal.SIGINT)
            finally:
                ended.append("at once")
    assert ended == ["what runs", "at once"]


def test_afterwards_signals_are_handled_as_before() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with interrupts.heard():
        interrupts.end_in_order()
        assert signal.getsignal(signal.SIGINT) is signal.getsignal(signal.SIGTERM) is not before[0]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_in_the_background_of_a_shell_without_job_control_ctrl_c_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts.heard():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_verb_in_another_thread_leaves_signals_alone() -> None:
    inside = []

    def verb() -> None:
        with interrupts.heard():
            inside.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=verb)
    thread.start()
    thread.join()
    assert inside == [signal.getsignal(signal.SIGINT)]
