"""The memory of a pod's processes by part: of its JVM, and of its Python processes. Linux only."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

TRACKED = "-XX:NativeMemoryTracking=summary"
_KIB = 1024
# Source: OpenJDK 17, VM.native_memory summary: "-  Java Heap (reserved=1048576KB, committed=1048576KB)".
_CATEGORY = re.compile(r"^-\s+(?P<name>[\w ]+?) \(reserved=\d+KB, committed=(?P<kib>\d+)KB\)", re.MULTILINE)
# Source: OpenJDK 17, GC.heap_info of G1 and Serial: "[0x00000000c0000000, 0x0000000100000000)"; Serial names each generation.
_RANGE = re.compile(r"\[0x([0-9a-f]+),(?: 0x[0-9a-f]+,)? 0x([0-9a-f]+)\)")
_MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) ")
_HEAP, _DIRECT = "Java Heap", "Other"
_JAVA = "java"


class Parts(BaseModel):
    """Memory of a pod by part, in MiB.

    Args:
        heap_mib: resident pages of the heap.
        class_mib: classes and metaspace.
        code_mib: compiled code.
        threads_mib: stacks.
        collector_mib: the garbage collector's own.
        direct_mib: buffers outside of the heap: Arrow's, netty's and NIO's.
        jvm_other_mib: what else the JVM tracks.
        rocksdb_mib: RocksDB's, by Spark's metric.
        native_mib: what of the JVM's process none of these has: libraries, mapped files, free memory of malloc; below 0 where tracked
            memory is not resident.
        python_mib: Python processes, what they share counted once.
        python_processes: how many.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    heap_mib: float
    class_mib: float
    code_mib: float
    threads_mib: float
    collector_mib: float
    direct_mib: float
    jvm_other_mib: float
    rocksdb_mib: float
    native_mib: float
    python_mib: float
    python_processes: int

    @property
    def jvm_mib(self) -> float:
        """The JVM besides its heap, its buffers and RocksDB."""
        return self.class_mib + self.code_mib + self.threads_mib + self.collector_mib + self.jvm_other_mib + self.native_mib

    @property
    def total_mib(self) -> float:
        """All."""
        return self.heap_mib + self.jvm_mib + self.direct_mib + self.rocksdb_mib + self.python_mib


def parts(pids: Iterable[int], rocksdb_mib: float) -> Parts | None:
    """The parts of a pod's processes now; None while it has no JVM that answers.

    Args:
        pids: its processes.
        rocksdb_mib: what RocksDB takes in it.
    """
    commands = {pid: _command(pid) for pid in pids}
    # spark-class's launcher is a JVM for a moment: the one that is tracked counts.
    jvm = next((pid for pid, words in commands.items() if words[:1] and Path(words[0]).name == _JAVA and TRACKED in words), None)
    python = [pid for pid, words in commands.items() if words[:1] and Path(words[0]).name.startswith("python")]
    said = None if jvm is None else _asked(jvm)
    if jvm is None or said is None:
        return None
    tracked = {found["name"]: int(found["kib"]) / _KIB for found in _CATEGORY.finditer(said)}
    heap_mib = _resident_mib(jvm, [int(address, 16) for found in _RANGE.findall(said) for address in found])
    named = {
        "class_mib": tracked.get("Class", 0.0) + tracked.get("Metaspace", 0.0) + tracked.get("Shared class space", 0.0),
        "code_mib": tracked.get("Code", 0.0),
        "threads_mib": tracked.get("Thread", 0.0),
        "collector_mib": tracked.get("GC", 0.0),
        "direct_mib": tracked.get(_DIRECT, 0.0),
    }
    other_mib = sum(tracked.values()) - sum(named.values()) - tracked.get(_HEAP, 0.0)
    native_mib = _own_mib([jvm]) - heap_mib - sum(named.values()) - other_mib - rocksdb_mib
    return Parts(
        heap_mib=heap_mib,
        jvm_other_mib=other_mib,
        rocksdb_mib=rocksdb_mib,
        native_mib=native_mib,
        python_mib=_own_mib(python),
        python_processes=len(python),
        **named,
    )


def _asked(pid: int) -> str | None:
    """The heap's addresses and the native memory of a JVM, by one start of jcmd."""
    commands = "GC.heap_info\nVM.native_memory summary scale=KB\n"
    asked = subprocess.run(["jcmd", str(pid), "-f", "/dev/stdin"], input=commands, capture_output=True, text=True, check=False)
    return asked.stdout if asked.returncode == 0 and _HEAP in asked.stdout else None


def _resident_mib(pid: int, addresses: Sequence[int]) -> float:
    """Resident memory between the first and the last of some addresses. Source: proc(5), smaps."""
    kib, counted = 0, False
    for line in _lines(Path(f"/proc/{pid}/smaps")):
        if mapping := _MAPPING.match(line):
            low, high = int(mapping[1], 16), int(mapping[2], 16)
            counted = bool(addresses) and low < max(addresses) and min(addresses) < high
        elif counted and line.startswith("Rss:"):
            kib += int(line.split()[1])
    return kib / _KIB


def _own_mib(pids: Sequence[int]) -> float:
    """Memory of processes that fork each other: shared pages count once, and those of files in full although other pods of this machine
    map them too, as on a node of their own.
    """
    private = sum(_kib(Path(f"/proc/{pid}/smaps_rollup"), "Pss_Anon") for pid in pids)
    return (private + max((_kib(Path(f"/proc/{pid}/status"), "RssFile") for pid in pids), default=0)) / _KIB


def _kib(file: Path, field: str) -> int:
    """Source: proc(5), smaps_rollup and status."""
    return next((int(line.split()[1]) for line in _lines(file) if line.startswith(f"{field}:")), 0)


def _command(pid: int) -> list[str]:
    return "".join(_lines(Path(f"/proc/{pid}/cmdline"))).split("\0")


def _lines(file: Path) -> list[str]:
    """Of a process that may have ended."""
    try:
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
