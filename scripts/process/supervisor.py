"""Supervisor of a process: ``supervisor.py SIGNAL GRACE_S LED FOLDER COMMAND...``, started only by `penstock.scripts.process.supervised`.

It starts the command, reports it on stdout, and stops it when stdin closes or on a signal. It runs by its path and imports only the
standard library, so that it starts in a few milliseconds and adds no path of this project to the command's.
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
# Polling interval for the end of the group: signals do not report grandchildren.
POLL_S = 0.02


class Asking(NamedTuple):
    """How the command is stopped.

    Args:
        number: number of the signal.
        grace_s: seconds before SIGKILL.
        led: whether only the command gets the signal first, and the rest of its group after its end.
    """

    number: int
    grace_s: float
    led: bool


def main() -> int:
    """Start the command, wait until it is to stop, and stop it.

    Returns:
        0, or 127 if the command could not be started.
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
    """Return the reading end of a pipe that gets a byte per signal."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    for number in (signal.SIGCHLD, *ASKED_TO_END):
        signal.signal(number, lambda *_: None)
    return reading


def _watch(child: subprocess.Popen[bytes], signals: int, asking: Asking) -> None:
    """Wait for the end of the parent or for a signal. A command that exits on its own is reported at once."""
    while True:
        readable = select.select([STDIN, signals], [], [])[0]
        if STDIN in readable:
            return
        if set(os.read(signals, 64)) & set(ASKED_TO_END):
            return
        if child.returncode is None and child.poll() is not None:
            _end(child, asking)


def _end(child: subprocess.Popen[bytes], asking: Asking) -> None:
    """Stop the command's process group, with SIGKILL after the grace period, and report it to the parent. Only once: the group's id may
    belong to another group afterwards.
    """
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
    """Signal only the command, which needs its children until it has ended."""
    child.send_signal(asking.number)
    until_s = time.monotonic() + asking.grace_s
    while child.poll() is None and time.monotonic() < until_s:
        time.sleep(POLL_S)


def _become_subreaper() -> None:
    """Make this process the parent of the command's orphans: a group with a zombie still exists, and in a container there may be no
    process that reaps. Linux only; elsewhere the system's first process reaps.
    """
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _reap(child: subprocess.Popen[bytes]) -> int | None:
    """Return the command's exit code, None while it runs. The rest of its group is reaped only after it, so that its exit code is not
    lost.
    """
    code = child.poll()
    if code is not None:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-child.pid, os.WNOHANG)[0]:
                pass
    return code


def _send(group: int, number: int) -> bool:
    """Send a signal and return whether the group still has processes. macOS refuses (EPERM) if only zombies are left."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _remove(folder: str) -> None:
    if folder:
        shutil.rmtree(folder, ignore_errors=True)


def _say(line: str) -> None:
    """Write one line to the parent, which may be gone."""
    with contextlib.suppress(BrokenPipeError):
        os.write(1, f"{line}\n".encode())


if __name__ == "__main__":
    sys.exit(main())
