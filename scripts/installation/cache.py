"""The cache of the user: what the set-up has fetched, once for all projects and versions.

Every entry lies in a folder named by the checksum of its lock, so that versions of Penstock stand side by side. An entry appears whole, by
a rename: who finds its folder may use it, and needs no lock for that::

    ~/.cache/penstock/
    |-- layout              which way of laying out the rest this is
    |-- setup.lock          held by the set-up that works here
    |-- logs/
    |-- jars-spark/<checksum>/
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
# Raised where entries of another version could no longer stand beside those of this one.
LAYOUT = 1
_ROOM_MB = 500

Progress = Callable[[str], None]


class Cache:
    """The cache.

    Args:
        folder: where it is; it need not be there yet.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of_user(cls, environment: Mapping[str, str] | None = None) -> Cache:
        """The cache in the folder that PENSTOCK_CACHE names, else where this system keeps caches: ``~/.cache/penstock`` on Linux, or
        below XDG_CACHE_HOME, and ``~/Library/Caches/penstock`` on macOS.

        Args:
            environment: the variables; this process's by default.
        """
        named = (os.environ if environment is None else environment).get(VARIABLE)
        return cls(Path(named).expanduser().absolute() if named else platformdirs.user_cache_path("penstock", appauthor=False))

    @property
    def logs(self) -> Path:
        """Where the tools' logs go."""
        return self.folder / "logs"

    def check_layout(self) -> None:
        """Nothing where this version of Penstock knows the cache's layout.

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
        """Gives the cache to one set-up alone, the second waits.

        Args:
            waiting: called once where another set-up works here.

        Yields:
            An empty folder on the cache's file system, removed in the end.

        Raises:
            CacheNotWritable: TOOL-015.
            CacheOfAnotherVersion: TOOL-016.
        """
        with self.written_to(), (self.folder / "setup.lock").open("a+") as held:
            self._wait(held.fileno(), waiting)
            # Another version may have made it since it was looked at.
            self.check_layout()
            temporary = self.folder / "tmp"
            # Nobody else works here: what lies here is from set-ups that were killed.
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir()
            try:
                yield temporary
            finally:
                shutil.rmtree(temporary, ignore_errors=True)

    @contextmanager
    def written_to(self) -> Iterator[None]:
        """Makes the cache where it is not there; what the system refuses meanwhile is an error of the cache's.

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
            # Nobody reads what is printed; that is not the cache's.
            raise
        except OSError as error:
            raise self._not_writable(error) from error

    def put(self, made: Path, entry: Path) -> None:
        """Puts a whole entry in its place; one that is there already, and is not as it should be, gives way.

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
        return CacheNotWritable(path=str(self.folder), given=error.strerror or str(error), need=need, fix=fix)
