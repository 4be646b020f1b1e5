"""The user's cache: the downloads of the set-up, shared by all projects and versions.

Every entry is named by the checksum of its lock or input, so that versions of Penstock coexist. An entry is put in place whole, by a
rename: a process that finds its folder may use it without a lock::

    ~/.cache/penstock/
    |-- layout              version of this layout
    |-- setup.lock          held by a running set-up
    |-- logs/
    |-- jars-spark/<checksum>/
    |-- jvm-classes/<checksum>/
    |-- class-data/<checksum>/
    |-- app-packages/<checksum>/   an app's own Python packages
    |-- app-jars/<checksum>/       and its jars
    |-- scans/<checksum>.json
    `-- cdktf/<checksum>/
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from penstock.scripts.errors import CacheNotWritable, CacheOfAnotherVersion

VARIABLE = "PENSTOCK_CACHE"
# Incremented if entries of another version can no longer coexist with those of this one.
LAYOUT = 1
_ROOM_MB = 500

Progress = Callable[[str], None]


class Cache:
    """The cache.

    Args:
        folder: its folder; need not exist yet.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of_user(cls, environment: Mapping[str, str] | None = None) -> Cache:
        """The cache in the folder that PENSTOCK_CACHE names, otherwise in this system's cache folder: ``~/.cache/penstock`` on Linux, or
        below XDG_CACHE_HOME, and ``~/Library/Caches/penstock`` on macOS.

        Args:
            environment: the variables; this process's by default.
        """
        named = (os.environ if environment is None else environment).get(VARIABLE)
        return cls(Path(named).expanduser().absolute() if named else platformdirs.user_cache_path("penstock", appauthor=False))

    @property
    def logs(self) -> Path:
        """Folder of the tools' logs."""
        return self.folder / "logs"

    def check_layout(self) -> None:
        """Checks that this version of Penstock supports the cache's layout.

        Raises:
            CacheOfAnotherVersion: TOOL-016.
        """
        try:
            given = (self.folder / "layout").read_text(encoding="utf-8", errors="replace").strip()
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise self._not_writable(error) from None
        if given != str(LAYOUT):
            fix = f"set {VARIABLE} to another directory, or delete this one and rerun penstock setup"
            raise CacheOfAnotherVersion(path=str(self.folder), given=f"layout {given[:20]}", need=f"layout {LAYOUT}", fix=fix)

    @contextmanager
    def writing(self, waiting: Progress = lambda said: None) -> Iterator[Path]:
        """Locks the cache for one set-up; a second one waits.

        Args:
            waiting: called once if another set-up holds the lock.

        Yields:
            An empty folder on the cache's file system, removed at the end.

        Raises:
            CacheNotWritable: TOOL-015.
            CacheOfAnotherVersion: TOOL-016.
        """
        with self.written_to(), (self.folder / "setup.lock").open("a+") as held:
            self._wait(held.fileno(), waiting)
            # Another version may have created it since it was checked.
            self.check_layout()
            temporary = self.folder / "tmp"
            # Under the lock: what is here was left by killed set-ups.
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir()
            try:
                yield temporary
            finally:
                shutil.rmtree(temporary, ignore_errors=True)

    @contextmanager
    def written_to(self) -> Iterator[None]:
        """Creates the cache if it does not exist; an OSError inside the context becomes an error of the cache.

        Raises:
            CacheNotWritable: TOOL-015.
        """
        try:
            self.logs.mkdir(parents=True, exist_ok=True)
            layout = self.folder / "layout"
            if not layout.exists():
                layout.write_text(f"{LAYOUT}\n", encoding="utf-8")
            yield
        except BrokenPipeError:
            # The reader of the output has gone; not an error of the cache.
            raise
        except OSError as error:
            raise self._not_writable(error) from error

    def put(self, made: Path, entry: Path) -> None:
        """Puts a whole entry in place; an existing, damaged one is replaced.

        Args:
            made: a folder below the one that `writing` yields.
            entry: a folder of the cache.
        """
        entry.parent.mkdir(parents=True, exist_ok=True)
        if entry.exists():
            entry.rename(Path(tempfile.mkdtemp(dir=self.folder / "tmp")) / "replaced")
        made.rename(entry)

    def _wait(self, lock: int, waiting: Progress) -> None:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        waiting(f"waiting for another setup in {self.folder}")
        fcntl.flock(lock, fcntl.LOCK_EX)

    def _not_writable(self, error: OSError) -> CacheNotWritable:
        need = f"a writable directory with {_ROOM_MB} MB of free space"
        fix = f"change its owner, free disk space, or set {VARIABLE} to another directory"
        given = str(error.strerror or error) + (f": {error.filename}" if error.filename else "")
        return CacheNotWritable(path=str(self.folder), given=given, need=need, fix=fix)
