from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from penstock.scripts.errors import CommandNotStarted
from penstock.scripts.layout import ROOT
from penstock.scripts.process.supervised import SupervisedProcess

# The end of a process is detected by the end of a pipe that it holds; this is for conditions without a pipe.
WITHIN_S = 30
# More than FD_SETSIZE, the files that select() can watch.
MANY_FILES = 1100


def _wait_for(condition: Callable[[], bool]) -> None:
    until_s = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < until_s
        os.sched_yield()


def _fifo(path: Path) -> int:
    """A log that ends when every process that could write to it is gone."""
    os.mkfifo(path)
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK)


def _read_to_end(pipe: int) -> bytes:
    os.set_blocking(pipe, True)
    with os.fdopen(pipe, "rb") as file:
        return file.read()


def _supervised(
    command: str, log: Path, remove: Path | None = None, grace_s: float = 10, ask: signal.Signals = signal.SIGTERM, *, led: bool = False
) -> SupervisedProcess:
    return SupervisedProcess(["sh", "-c", command], env=os.environ, log=log, remove=remove, grace_s=grace_s, ask=ask, led=led)


def test_a_command_and_its_children_end_with_the_supervised_process(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    pipe = _fifo(tmp_path / "log")
    with _supervised("sleep 1000 & sleep 1000", tmp_path / "log", remove=folder) as supervised:
        assert supervised.alive()
        assert supervised.returncode is None
    assert _read_to_end(pipe) == b""
    assert not supervised.alive()
    assert supervised.returncode == -signal.SIGTERM
    assert not folder.exists()


PARENT = """
import os, sys
from pathlib import Path
from penstock.scripts.process.supervised import SupervisedProcess
command = ["sh", "-c", "trap '' TERM HUP INT; sleep 1000 & sleep 1000"]
with SupervisedProcess(command, env=os.environ, log=Path(sys.argv[1]), remove=Path(sys.argv[2]), grace_s=0.1) as supervised:
    print(supervised.pid, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_parent_leaves_no_child_and_no_folder(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "segment").write_bytes(b"kept open")
    pipe = _fifo(tmp_path / "log")
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, tmp_path / "log", folder],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert parent.stdin is not None and parent.stdout is not None
    with parent.stdin, parent.stdout:
        assert int(parent.stdout.readline()) > 0
        parent.send_signal(number)
        parent.wait()
        # The child, its own child and the supervisor hold the log; the supervisor is the last of them.
        _read_to_end(pipe)
    assert not folder.exists()


def test_the_command_has_a_session_of_its_own_so_that_ctrl_c_does_not_reach_it(tmp_path: Path) -> None:
    with _supervised("sleep 1000", tmp_path / "log") as supervised:
        assert os.getsid(supervised.pid) == supervised.pid != os.getsid(0)


def test_a_command_that_does_not_heed_is_killed_after_the_grace(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with _supervised("trap '' TERM; echo deaf; while :; do sleep 0.1; done", log, grace_s=0.2) as supervised:
        _wait_for(lambda: supervised.tail() == "deaf")
    assert supervised.returncode == -signal.SIGKILL


def test_a_command_is_asked_with_the_signal_that_was_chosen(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with _supervised("trap 'echo asked; exit 7' INT; echo ready; while :; do sleep 0.1; done", log, ask=signal.SIGINT) as supervised:
        _wait_for(lambda: supervised.tail() == "ready")
    assert supervised.returncode == 7
    assert supervised.tail(1) == "asked"


@pytest.mark.parametrize(("led", "last_line"), [(True, "helped"), (False, "alone")])
def test_a_command_that_needs_its_children_to_end_well_is_asked_before_they_are(tmp_path: Path, led: bool, last_line: str) -> None:
    """The child answers when the command asks it; if both got the signal at once, it would be gone by then."""
    helper = "(trap 'exit 0' TERM; echo up > up; while [ ! -e asked ]; do sleep 0.02; done; echo helped > answer) & child=$!"
    ending = "trap 'sleep 0.3; touch asked; wait $child; cat answer 2>/dev/null || echo alone; exit 0' TERM"
    with _supervised(f"cd {tmp_path}; {helper}; {ending}; while :; do sleep 0.02; done", tmp_path / "log", led=led):
        _wait_for((tmp_path / "up").exists)
    assert (tmp_path / "log").read_text(encoding="utf-8").splitlines()[-1] == last_line


def test_a_command_that_exits_on_its_own_keeps_its_log_and_its_folder_until_the_stop(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    with _supervised("sleep 1000 & for n in 1 2 3; do echo $n; done; exit 3", tmp_path / "log", remove=folder) as supervised:
        _wait_for(lambda: not supervised.alive())
        assert supervised.returncode == 3
        assert supervised.tail(2) == "2\n3"
        assert folder.exists()
    assert supervised.returncode == 3
    assert not folder.exists()


def test_a_keeper_that_was_killed_is_noticed_and_nothing_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    pipe = _fifo(tmp_path / "log")
    with _supervised("sleep 1000", tmp_path / "log", remove=folder) as supervised:
        assert supervised._supervisor is not None
        supervised._supervisor.kill()
        _wait_for(lambda: not supervised.alive())
        assert _read_to_end(pipe) == b""
    assert supervised.returncode is None
    assert not folder.exists()


def test_a_process_with_many_open_files_starts_one_and_hears_of_its_end(tmp_path: Path) -> None:
    """More than select() takes, such as of a driver with many connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as held:
        resource.setrlimit(resource.RLIMIT_NOFILE, (MANY_FILES + 200, hard))
        held.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(MANY_FILES):
            held.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        supervised = held.enter_context(_supervised("exit 3", tmp_path / "log"))
        _wait_for(lambda: not supervised.alive())
        assert supervised.returncode == 3


def test_a_missing_command_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandNotStarted) as raised:
        SupervisedProcess(["no-such-command"], env=os.environ, log=tmp_path / "log").start()
    assert raised.value.given == "no-such-command"
    assert raised.value.need == "No such file or directory"


def test_the_log_is_appended_to_and_its_folder_made(tmp_path: Path) -> None:
    log = tmp_path / "new" / "log"
    for word in ("first", "second"):
        with _supervised(f"echo {word}", log) as supervised:
            _wait_for(lambda supervised=supervised: not supervised.alive())  # type: ignore[misc]
    assert log.read_text() == "first\nsecond\n"


def test_a_leash_that_was_not_started_is_not_alive_and_stops_without_a_word(tmp_path: Path) -> None:
    supervised = _supervised("true", tmp_path / "log")
    assert not supervised.alive()
    assert supervised.tail() == ""
    supervised.stop()
