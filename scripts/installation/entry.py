"""The interface of every entry of the cache."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from penstock.scripts.installation.cache import Cache
from penstock.scripts.installation.tool import Progress


class Entry(ABC):
    """Something that is downloaded from a lock, or built from sources.

    Args:
        name: of its folder in the cache and of its log.
        title: for people.
        tool: the tool that downloads or builds it.
        download_mb: approximate download size with empty caches of the tool, in MB; 0: unknown.
    """

    def __init__(self, *, name: str, title: str, tool: str, download_mb: int) -> None:
        self.name = name
        self.title = title
        self.tool = tool
        self.download_mb = download_mb

    def folder(self, cache: Cache) -> Path:
        """Its folder, whether it exists or not."""
        return cache.folder / self.name / self.key()

    @abstractmethod
    def key(self) -> str:
        """The checksum of its lock or of its sources."""

    @abstractmethod
    def faults(self, folder: Path) -> list[str]:
        """Differences between a folder and the lock, one line each; empty if it is complete."""

    @abstractmethod
    def fetch(self, into: Path, log: Path, progress: Progress) -> None:
        """Downloads or builds it into a new folder, and verifies it.

        Raises:
            PenstockError: it could not be downloaded or built, or differs from the lock.
        """
