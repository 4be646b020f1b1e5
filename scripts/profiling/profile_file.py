"""The file of a profile, which is there whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.jobs.spec.job_profile import JobProfile
from penstock.scripts.profiling.errors import ProfileNotWritten


class ProfileFile:
    """A context manager: the file is replaced when the context ends without an error; nothing is left of it otherwise.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")

    def __enter__(self) -> Self:
        # Opened before anything is measured: a folder without write access is reported at once.
        try:
            self._unfinished.touch()
        except OSError as error:
            raise self._refused(error) from None
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if kind is None and self._unfinished.stat().st_size:
                self._unfinished.replace(self._path)
        except OSError as fault:
            raise self._refused(fault) from None
        finally:
            self._unfinished.unlink(missing_ok=True)

    def write(self, profile: JobProfile) -> None:
        """Writes the profile.

        Raises:
            ProfileNotWritten: PROF-008.
        """
        text = json.dumps(profile.model_dump(mode="json", by_alias=True), indent=1, ensure_ascii=False) + "\n"
        try:
            self._unfinished.write_text(text, encoding="utf-8")
        except OSError as error:
            raise self._refused(error) from None

    def _refused(self, error: OSError) -> ProfileNotWritten:
        given = error.strerror or str(error)
        return ProfileNotWritten(path=str(self._path), given=given, need="a writable file", fix="specify another file with --out")
