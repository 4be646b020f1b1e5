from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.pod_memory.parts import TRACKED, parts

_JCMD = shutil.which("jcmd")
# Has 32 MiB outside of its heap, and waits.
HOLDS = """
class Holds {
    static java.nio.ByteBuffer held = java.nio.ByteBuffer.allocateDirect(32 << 20);
    public static void main(String[] arguments) throws Exception {
        System.out.println(held.capacity());
        System.in.read();
    }
}
"""


@pytest.fixture(params=["-XX:+UseG1GC", "-XX:+UseSerialGC"])
def jvm(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[int]:
    source = tmp_path / "Holds.java"
    source.write_text(HOLDS, encoding="utf-8")
    command = ["java", TRACKED, request.param, "-Xms64m", "-Xmx64m", "-XX:+AlwaysPreTouch", str(source)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.communicate()


@pytest.mark.skipif(_JCMD is None, reason="needs jcmd of a JDK")
def test_the_parts_of_a_jvm_are_its_heap_its_buffers_and_the_rest(jvm: int) -> None:
    measured = parts([jvm], rocksdb_mib=0)
    assert measured is not None
    # The JVM keeps the heap and the class data in one range of addresses.
    assert measured.heap_mib == pytest.approx(64, abs=2)
    assert 32 <= measured.direct_mib < 40
    assert measured.python_mib == measured.python_processes == 0
    status = Path(f"/proc/{jvm}/status").read_text(encoding="utf-8").splitlines()
    resident_mib = next(int(line.split()[1]) for line in status if line.startswith("VmRSS:")) / 1024
    assert measured.total_mib == pytest.approx(resident_mib, rel=0.05)


def test_a_pod_without_a_jvm_has_no_parts_yet() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert parts([process.pid], rocksdb_mib=0) is None
        process.communicate()
