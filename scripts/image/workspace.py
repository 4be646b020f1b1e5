"""The folder of the image builds in the user's cache.

::

    ~/.cache/penstock/image/
    |-- lock                  held by a running build
    |-- storage/              buildah's images and layers
    |-- tmp/                  of the running build; what a killed one has left goes with the next
    |-- logs/
    `-- archives/<checksum>/  built images as files

buildah's mounts are made in a mount namespace of its own, and end with it, however the build ends.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from penstock.scripts.image.errors import ImageNotBuilt
from penstock.scripts.installation import tool
from penstock.scripts.installation.cache import Cache

Progress = Callable[[str], None]
# Of the checksummed archives, of 1 GB each.
_KEPT = 2
# Of a message.
_LINES = 15


class Workspace:
    """The folder, held by one build at a time.

    Args:
        folder: its path.
        progress: called with the current activity.
    """

    def __init__(self, folder: Path, progress: Progress) -> None:
        self.folder = folder
        self.progress = progress
        self.storage = folder / "storage"
        self.temporary = folder / "tmp"
        self.archives = folder / "archives"

    def run(self, name: str, command: list[str], *, environment: Mapping[str, str] | None = None, said: Path | None = None) -> str:
        """Runs a tool to its end; it ends with this process.

        Args:
            name: of the log.
            command: the tool and its arguments.
            environment: its variables; this process's by default.
            said: a folder with files of what else it says.

        Returns:
            The end of its output.

        Raises:
            ImageNotBuilt: IMG-010.
        """
        log = self.folder / "logs" / f"{name}.log"
        variables = {**os.environ, "TMPDIR": str(self.temporary)} if environment is None else environment
        ended = tool.run(command, environment=variables, log=log, cwd=self.temporary, progress=self.progress)
        if ended.code != 0:
            given = f"code {ended.code}; the end of {log}:\n{_of_files(said, log)}{ended.said}"
            raise ImageNotBuilt(path=name, given=given, need="a build that succeeds", fix=f"check {log}; a rerun resumes from built layers")
        return ended.said

    def log_of(self, name: str) -> str:
        """The whole log of a tool."""
        return (self.folder / "logs" / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    def forget_old_archives(self) -> None:
        """Deletes all but the newest."""
        newest = sorted(self.archives.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in newest[_KEPT:]:
            shutil.rmtree(old)


def _of_files(folder: Path | None, log: Path) -> str:
    """The end of what is said in a folder's files, which also goes into the log."""
    files = sorted(folder.iterdir()) if folder else []
    lines = [line for file in files for line in file.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)]
    with log.open("a", encoding="utf-8") as end:
        end.writelines(lines)
    return "".join(lines[-_LINES:])


@contextmanager
def workspace(progress: Progress = lambda said: None, cache: Cache | None = None) -> Iterator[Workspace]:
    """The workspace in the user's cache; a second build waits.

    Args:
        progress: called with the current activity.
        cache: the user's by default.

    Raises:
        PenstockError: TOOL-015, TOOL-016.
    """
    used = cache or Cache.of_user()
    used.check_layout()
    work = Workspace(used.folder / "image", progress)
    with used.written_to():
        work.folder.mkdir(parents=True, exist_ok=True)
        lock = (work.folder / "lock").open("a+")
    with lock:
        _wait(lock.fileno(), lambda: progress(f"waiting for another build in {work.folder}"))
        with used.written_to():
            # Under the lock: what is here was left by killed builds.
            shutil.rmtree(work.temporary, ignore_errors=True)
            for folder in (work.temporary, work.archives, work.storage):
                folder.mkdir(exist_ok=True)
        try:
            yield work
        finally:
            shutil.rmtree(work.temporary, ignore_errors=True)


def _wait(lock: int, waiting: Callable[[], None]) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        waiting()
        fcntl.flock(lock, fcntl.LOCK_EX)
