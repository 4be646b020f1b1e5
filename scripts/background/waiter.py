"""Parent of a detached command: ``waiter.py FOLDER COMMAND...``, started only by `penstock.scripts.background.detached_run`.

It records the command's process and how it ended, however it ends. It runs by its path and imports only the standard library.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PROCESS, END = "process.json", "end.json"


def main() -> int:
    """Runs the command to its end.

    Returns:
        0.
    """
    folder, command = Path(sys.argv[1]), sys.argv[2:]
    # Who has started it need not wait for it.
    if os.fork():
        os._exit(0)
    # It only waits: the signal of a shutdown is for the command, whose end is to be recorded.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_with_default_signals)
    _write(folder / PROCESS, {"pid": child.pid, "ticks": started_ticks(child.pid)})
    code = child.wait()
    _write(folder / END, {"code": code, "at": time.time()})
    return 0


def started_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot: with it a number of a process is not taken for that of a later one.

    Returns:
        None if there is no such process, or it only waits to be reaped. Source: proc(5).
    """
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if state == "Z" else int(fields[18])


def _with_default_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _write(file: Path, content: dict[str, object]) -> None:
    """Whole or not at all; nowhere if the folder is gone, as after a stop."""
    if not file.parent.is_dir():
        return
    written = file.with_suffix(".new")
    written.write_text(json.dumps(content), encoding="utf-8")
    written.replace(file)


if __name__ == "__main__":
    sys.exit(main())
