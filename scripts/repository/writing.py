"""Writes a new repository: whole, or not at all."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from penstock.scripts.repository.errors import FolderNotEmpty, FolderNotWritten

# A clone of a repository without a commit has it and nothing else.
_MAY_BE_THERE = ".git"


def refuse_a_full_folder(folder: Path) -> None:
    """Raises if a folder has something else than ``.git`` in it, or is a file.

    Raises:
        FolderNotEmpty: INIT-001.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise FolderNotEmpty(path=str(folder), given="a file", need="a new or an empty folder", fix="name another folder")
    found = sorted(one.name for one in folder.iterdir() if one.name != _MAY_BE_THERE)
    if found:
        need = f"a new folder, or one with nothing but {_MAY_BE_THERE}"
        raise FolderNotEmpty(path=str(folder), given=f"with {found[0]}", need=need, fix="name another folder")


def write(folder: Path, contents: Mapping[str, str]) -> None:
    """Writes files into a folder that is empty or does not exist.

    Args:
        folder: the repository's.
        contents: path -> text.

    Raises:
        FolderNotEmpty: INIT-001.
        FolderNotWritten: INIT-003.
    """
    refuse_a_full_folder(folder)
    try:
        # On the same file system: then a move copies nothing, and does not end half-way on a full disk.
        beside = folder if folder.exists() else folder.parent
        beside.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=beside, prefix=f".{folder.name}-") as temporary:
            made = Path(temporary) / folder.name
            for path, text in contents.items():
                file = made / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            _move(made, folder)
    except OSError as error:
        raise FolderNotWritten(
            path=str(folder), given=f"{error.strerror}: {error.filename}", need="a folder that can be written to", fix="name another one"
        ) from error


def _move(made: Path, folder: Path) -> None:
    """Moves what was made. A folder that exists stays the same one: it may be the current folder of a shell."""
    if not folder.exists():
        made.rename(folder)
        return
    names = sorted(one.name for one in made.iterdir())
    try:
        for name in names:
            (made / name).rename(folder / name)
    except BaseException:
        for name in names:
            if not (made / name).exists():
                (folder / name).rename(made / name)
        raise
