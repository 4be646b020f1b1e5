from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.pod_memory.control_group import ControlGroup, ControlGroups

_MOUNT = Path("/sys/fs/cgroup")
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not os.access(_MOUNT / "memory" if (_MOUNT / "memory").is_dir() else _MOUNT, os.W_OK),
    reason="needs root and a writable control group of memory",
)
# Holds so many MiB until its input ends.
HOLDS = "import os, sys; held = os.urandom(int(sys.argv[1]) << 20); print(len(held), flush=True); sys.stdin.read()"


def _holding(group: ControlGroup, mib: int) -> subprocess.Popen[bytes]:
    command = ["/bin/sh", "-c", f'echo $$ > "{group.processes_file}"; exec "$@"', "sh", sys.executable, "-c", HOLDS, str(mib)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_the_memory_of_a_process_that_joined_counts_and_the_group_is_removed() -> None:
    with ControlGroups(f"penstock-test-{os.getpid()}") as groups:
        group = groups.add("one", 256)
        with _holding(group, 64) as process:
            assert process.stdout is not None
            process.stdout.readline()
            used = group.usage()
            assert group.processes() == [process.pid]
            process.communicate()
        assert 64 <= used.rss_mib < 128
        assert used.working_set_mib >= 64
        assert group.kills() == 0
    assert not groups.folder.exists()


def test_the_kernel_kills_what_exceeds_the_limit() -> None:
    with ControlGroups(f"penstock-test-{os.getpid()}") as groups:
        group = groups.add("one", 64)
        with _holding(group, 256) as process:
            process.communicate()
        assert process.returncode == -9
        assert group.kills() == 1
