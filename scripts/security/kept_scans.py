"""Scans of parts that have not changed, kept in the user's cache.

A scan is kept under the checksum of all that it depends on: the synthesized part, the scanner's lock and the gate's own code.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from penstock.scripts.installation import locks
from penstock.scripts.installation.cache import Cache
from penstock.scripts.security.finding import Finding
from penstock.scripts.security.parts import Part

# An environment has a dozen parts; a scan has a few kilobytes.
_MOST = 500


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True)

    findings: tuple[Finding, ...]


class KeptScans:
    """The kept scans.

    Args:
        cache: the user's by default.
    """

    def __init__(self, cache: Cache | None = None) -> None:
        self._cache = cache or Cache.of_user()
        self.folder = self._cache.folder / "scans"
        self._gate = _gate()

    def find(self, part: Part) -> tuple[Finding, ...] | None:
        """The scanner's findings in a part; None if they are not known.

        Args:
            part: the part, not planned.
        """
        file = self._file(part)
        try:
            kept = _Kept.model_validate_json(file.read_bytes())
            # The oldest are removed.
            file.touch()
        except (OSError, ValidationError):
            return None
        return kept.findings

    def keep(self, part: Part, findings: tuple[Finding, ...]) -> None:
        """Keep the scanner's findings in a part.

        Args:
            part: the part, not planned.
            findings: all of the scanner's.

        Raises:
            PenstockError: TOOL-015, TOOL-016, the cache cannot be used.
        """
        self._cache.check_layout()
        with self._cache.written_to():
            self.folder.mkdir(exist_ok=True)
            file = self._file(part)
            # Another scan may read it.
            temporary = file.with_suffix(f".{hashlib.sha256(str(id(self)).encode()).hexdigest()[:8]}")
            temporary.write_text(_Kept(findings=findings).model_dump_json(), encoding="utf-8")
            temporary.replace(file)
            self._remove_oldest()

    def _file(self, part: Part) -> Path:
        key = hashlib.sha256(f"{self._gate}\0{part.name}\0{part.framework}\0{part.text}".encode()).hexdigest()
        return self.folder / f"{key}.json"

    def _remove_oldest(self) -> None:
        kept = sorted(self.folder.glob("*.json"), key=lambda file: file.stat().st_mtime, reverse=True)
        for file in kept[_MOST:]:
            with contextlib.suppress(FileNotFoundError):
                file.unlink()


def _gate() -> str:
    """Checksum of what scans a part."""
    digest = hashlib.sha256((locks.folder() / "checkov.lock").read_bytes())
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()
