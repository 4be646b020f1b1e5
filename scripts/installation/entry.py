"""What every entry of the cache answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from penstock.scripts.installation.cache import Cache
from penstock.scripts.installation.tool import Progress


class Entry(ABC):
    """Something that is fetched from a lock.

    Args:
        name: of its folder in the cache and of its log.
        title: what it is to a person.
        tool: the tool that fetches it.
        download_mb: about how much is downloaded where the tool has nothing of it yet, in MB.
    """

    def __init__(self, *, name: str, title: str, tool: str, download_mb: int) -> None:
        self.name = name
        self.title = title
        self.tool = tool
        self.download_mb = download_mb

    def folder(self, cache: Cache) -> Path:
        """Where it is, or will be."""
        return cache.folder / self.name / self.key()

    @abstractmethod
    def key(self) -> str:
        """The checksum of its lock."""

    @abstractmethod
    def faults(self, folder: Path) -> list[str]:
        """How what lies in a folder differs from the lock, one line each; none if it is whole."""

    @abstractmethod
    def fetch(self, into: Path, log: Path, progress: Progress) -> None:
        """Fetches it into a folder that is not there yet, and holds it against the lock.

        Raises:
            PenstockError: it could not be fetched, or is not what the lock names.
        """
