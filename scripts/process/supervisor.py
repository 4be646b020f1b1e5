"""The supervisor of a process: ``supervisor.py SIGNAL GRACE_S LED FOLDER COMMAND...``, started by `penstock.scripts.process.supervised`
and by nothing else.

It starts the command, says so on stdout, and ends it when stdin closes or a signal asks for it. It runs by its path and imports the
standard library alone, so that it starts in a few milliseconds and lays no path of this project on the command.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from typing import NamedTuple

STDIN = 0
ASKED_TO_END = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# Source: linux/prctl.h.
PR_SET_CHILD_SUBREAPER = 36
# How often the supervisor looks whether the group is gone: signals do not tell of grandchildren.
POLL_S = 0.02


class Asking(NamedTuple):
    """How the command is asked to end.

    Args:
        number: of the signal.
        grace_s: seconds before SIGKILL.
        led: whether the command alone is asked first, and what it leaves behind after it.
    """

    number: int
    grace_s: float
    led: bool


def main() -> int:
    """Starts the command, waits until it is to end, and ends it.

    Returns:
        0, or 127 where the command could not be started.
    """
    asking = Asking(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3] == "led")
    folder, command = sys.argv[4], sys.argv[5:]
    signals = _signals_as_a_stream()
    _become_subreaper()
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, start_new_session=True)
    except OSError as error:
        _say(f"refused {error.strerror}")
        _remove(folder)
        return 127
    _say(f"started {child.pid}")
    _watch(child, signals, asking)
    if child.returncode is None:
        _end(child, asking)
    _remove(folder)
    return 0


def _signals_as_a_stream() -> int:
    """The reading end of a pipe that gets a byte for each signal."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    for number in (signal.SIGCHLD, *ASKED_TO_END):
        signal.signal(number, lambda *_: None)
    return reading


def _watch(child: subprocess.Popen[bytes], signals: int, asking: Asking) -> None:
    """Returns when the parent is gone, or when a signal asks for the end. A command that ends by itself is reported at once."""
    while True:
        readable = select.select([STDIN, signals], [], [])[0]
        if STDIN in readable:
            return
        if set(os.read(signals, 64)) & set(ASKED_TO_END):
            return
        if child.returncode is None and child.poll() is not None:
            _end(child, asking)


def _end(child: subprocess.Popen[bytes], asking: Asking) -> None:
    """Ends all of the command's process group, asked first, forced after the grace, and tells the parent. Only once: the group's number
    may be another's afterwards."""
    if asking.led:
        _ask_leader(child, asking)
    for number, limit_s in ((asking.number, asking.grace_s), (signal.SIGKILL, 5.0)):
        until_s = time.monotonic() + limit_s
        gone = not _send(child.pid, number)
        while not gone and time.monotonic() < until_s:
            _reap(child)
            gone = not _send(child.pid, 0)
            if not gone:
                time.sleep(POLL_S)
        if gone:
            break
    code = _reap(child)
    _say(f"ended {-signal.SIGKILL if code is None else code}")


def _ask_leader(child: subprocess.Popen[bytes], asking: Asking) -> None:
    """Asks the command itself, which needs its children until it has ended."""
    child.send_signal(asking.number)
    until_s = time.monotonic() + asking.grace_s
    while child.poll() is None and time.monotonic() < until_s:
        time.sleep(POLL_S)


def _become_subreaper() -> None:
    """Makes this process the parent of what the command leaves behind, for a group with a zombie is not gone, and in a container there
    may be nobody who reaps. Only Linux knows this; elsewhere the first process of the system reaps."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _reap(child: subprocess.Popen[bytes]) -> int | None:
    """The command's exit code, None while it runs. What is left of its group is reaped after it, so as not to take its code away."""
    code = child.poll()
    if code is not None:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-child.pid, os.WNOHANG)[0]:
                pass
    return code


def _send(group: int, number: int) -> bool:
    """Sends a signal; whether there is somebody left in the group. macOS refuses (EPERM) where only zombies are left."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _remove(folder: str) -> None:
    if folder:
        shutil.rmtree(folder, ignore_errors=True)


def _say(line: str) -> None:
    """One line to the parent, which may be gone."""
    with contextlib.suppress(BrokenPipeError):
        os.write(1, f"{line}\n".encode())


if __name__ == "__main__":
    sys.exit(main())
