"""The set-up: downloads or builds what is missing in the cache, one entry at a time: completed entries stay if a later one fails."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from penstock.scripts.installation.cache import Cache
from penstock.scripts.installation.cdktf_cli import CdktfCli
from penstock.scripts.installation.entry import Entry
from penstock.scripts.installation.jars import Jars
from penstock.scripts.installation.jvm_classes import JvmClasses
from penstock.scripts.progress import Steps


def spark_jars(data: Path | None = None) -> Jars:
    """The jars that Spark gets in addition to PySpark's own."""
    return Jars("spark", title="Spark's jars", download_mb=22, data=data)


def kafka_jars(data: Path | None = None) -> Jars:
    """The Kafka broker."""
    return Jars("kafka", title="The Kafka broker's jars", download_mb=45, data=data)


def entries(data: Path | None = None, sources: Path | None = None) -> list[Entry]:
    """Everything that a set-up downloads or builds.

    Args:
        data: the folder of the locks; the package's own by default.
        sources: the folder of the classes for Spark's JVM; the package's own by default.
    """
    return [spark_jars(data), kafka_jars(data), JvmClasses(sources), CdktfCli(data)]


def due(cache: Cache, wanted: Sequence[Entry]) -> list[Entry]:
    """The entries that are missing in the cache or differ from their locks.

    Raises:
        CacheOfAnotherVersion: TOOL-016.
    """
    cache.check_layout()
    return [entry for entry in wanted if entry.faults(entry.folder(cache))]


def fetch(cache: Cache, wanted: Sequence[Entry], steps: Steps) -> None:
    """Downloads what is missing; does nothing if nothing is.

    Args:
        cache: the target.
        wanted: the entries.
        steps: shows progress.

    Raises:
        PenstockError: TOOL-011 to TOOL-017.
    """
    with cache.writing(lambda said: steps.line("wait", said)) as temporary:
        # Another set-up may have downloaded them meanwhile.
        for entry in due(cache, wanted):
            _fetch(cache, entry, temporary, steps)


def _fetch(cache: Cache, entry: Entry, temporary: Path, steps: Steps) -> None:
    folder = entry.folder(cache)
    if folder.exists():
        for fault in entry.faults(folder)[:5]:
            steps.line(entry.name, fault)
    into = temporary / entry.name
    size = f", up to {entry.download_mb} MB to download" if entry.download_mb else ""
    with steps.at(entry.name, f"{entry.title}{size}, into {folder}") as step:
        entry.fetch(into, cache.logs / f"{entry.name}.log", lambda said: step.watch(f"{entry.title}: {said}"))
        cache.put(into, folder)
        megabytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()) / 1e6
        step.said = f"{entry.title}, {megabytes:.0f} MB" if megabytes >= 1 else f"{entry.title}, {megabytes * 1000:.0f} kB"
