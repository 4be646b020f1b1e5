from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from penstock.scripts.process.process_tree import ProcessTree

# Uses the CPU for 0.2 s, waits for a child that does the same, and stays.
BUSY = """
import subprocess, sys, time
while time.process_time() < 0.2:
    pass
if len(sys.argv) == 1:
    subprocess.run([sys.executable, __file__, "child"], check=True)
    print("done", flush=True)
    sys.stdin.read()
"""


def test_the_cpu_time_of_children_that_have_ended_counts(tmp_path: Path) -> None:
    (tmp_path / "busy.py").write_text(BUSY, encoding="utf-8")
    command = [sys.executable, str(tmp_path / "busy.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        # The kernel counts in hundredths of a second.
        assert ProcessTree(process.pid).cpu_s() >= 0.38
        process.communicate()


def test_a_tree_that_has_ended_uses_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
        assert ProcessTree(process.pid).cpu_s() == 0
