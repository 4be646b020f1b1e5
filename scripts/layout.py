"""Paths of the package and of what the set-up has put into the user's cache."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from penstock.scripts.errors import NotSetUp
from penstock.scripts.installation import setting_up
from penstock.scripts.installation.cache import Cache
from penstock.scripts.installation.cdktf_cli import CdktfCli
from penstock.scripts.installation.entry import Entry
from penstock.scripts.installation.jvm_classes import JvmClasses

# Folder of the package: the checkout, or where it is installed.
ROOT = Path(str(files("penstock"))).resolve().parent


def python_path(*folders: Path) -> str:
    """Return the PYTHONPATH of a child process that imports this very package.

    Args:
        folders: folders that come first.

    Returns:
        Absolute paths, joined with this system's separator. An installed package needs no entry: the other packages in its folder could
        shadow modules of the standard library.
    """
    own = [] if ROOT.name in ("site-packages", "dist-packages") else [ROOT]
    return os.pathsep.join(str(folder.absolute()) for folder in (*folders, *own))


def spark_jars(cache: Cache | None = None) -> list[Path]:
    """Return the jars that Spark needs in addition to PySpark's: the Kafka source, s3a with its part of the AWS SDK, and Penstock's own.

    Args:
        cache: the cache; the user's by default.

    Returns:
        Absolute paths, sorted by name, Penstock's own last.

    Raises:
        NotSetUp: TOOL-020, the cache has no jars.
        CacheOfAnotherVersion: TOOL-016.
    """
    return [*_jars(setting_up.spark_jars(), cache), *_jars(JvmClasses(), cache)]


def kafka_classpath(cache: Cache | None = None) -> str:
    """Return the class path of the Kafka broker and of its storage tool, for ``java -cp``.

    Args:
        cache: the cache; the user's by default.

    Returns:
        Absolute paths of jars, sorted by name, joined with this system's separator.

    Raises:
        NotSetUp: TOOL-020, the cache has no jars.
        CacheOfAnotherVersion: TOOL-016.
    """
    return os.pathsep.join(str(jar) for jar in _jars(setting_up.kafka_jars(), cache))


def cdktf(cache: Cache | None = None) -> Path:
    """Return the path of the ``cdktf`` command.

    Args:
        cache: the cache; the user's by default.

    Returns:
        An absolute path.

    Raises:
        NotSetUp: TOOL-020, the cache has no cdktf.
        CacheOfAnotherVersion: TOOL-016.
    """
    checked = _checked(cache)
    command = CdktfCli.command(CdktfCli().folder(checked))
    if not command.exists():
        raise _not_set_up(command)
    return command


def _jars(jars: Entry, cache: Cache | None) -> list[Path]:
    folder = jars.folder(_checked(cache))
    paths = sorted(folder.glob("*.jar"))
    if not paths:
        raise _not_set_up(folder)
    return paths


def _checked(cache: Cache | None) -> Cache:
    known = cache or Cache.of_user()
    known.check_layout()
    return known


def _not_set_up(path: Path) -> NotSetUp:
    return NotSetUp(path=str(path), need="what penstock setup installs", fix="penstock setup, or ./scripts/setup in a checkout")
