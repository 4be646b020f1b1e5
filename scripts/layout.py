"""Where things are: the package itself, and what the set-up has put into the user's cache."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from penstock.scripts.errors import NotSetUp
from penstock.scripts.installation import setting_up
from penstock.scripts.installation.cache import Cache
from penstock.scripts.installation.cdktf_cli import CdktfCli
from penstock.scripts.installation.jars import Jars

# The folder that holds the package: the checkout, or where it is installed.
ROOT = Path(str(files("penstock"))).resolve().parent


def python_path(*folders: Path) -> str:
    """The PYTHONPATH of a child process that is to import this very package.

    Args:
        folders: what goes before it.

    Returns:
        Absolute paths with the separator of this system between them. An installed package is found without: its folder holds others
        too, which would then hide modules of the standard library.
    """
    own = [] if ROOT.name in ("site-packages", "dist-packages") else [ROOT]
    return os.pathsep.join(str(folder.absolute()) for folder in (*folders, *own))


def spark_jars(cache: Cache | None = None) -> list[Path]:
    """The jars that Spark gets beside PySpark's own: the Kafka source, s3a and what it needs of the AWS SDK.

    Args:
        cache: the user's by default.

    Returns:
        Absolute paths, sorted by name.

    Raises:
        NotSetUp: TOOL-020, there are none.
        CacheOfAnotherVersion: TOOL-016.
    """
    return _jars(setting_up.spark_jars(), cache)


def kafka_classpath(cache: Cache | None = None) -> str:
    """The class path of the Kafka broker and of its storage tool, for ``java -cp``.

    Args:
        cache: the user's by default.

    Returns:
        Absolute paths of jars, sorted by name, with the separator of this system between them.

    Raises:
        NotSetUp: TOOL-020, there are no jars.
        CacheOfAnotherVersion: TOOL-016.
    """
    return os.pathsep.join(str(jar) for jar in _jars(setting_up.kafka_jars(), cache))


def cdktf(cache: Cache | None = None) -> Path:
    """The ``cdktf`` command.

    Args:
        cache: the user's by default.

    Returns:
        An absolute path.

    Raises:
        NotSetUp: TOOL-020, it is not there.
        CacheOfAnotherVersion: TOOL-016.
    """
    found = _checked(cache)
    command = CdktfCli.command(CdktfCli().folder(found))
    if not command.exists():
        raise _not_set_up(command)
    return command


def _jars(jars: Jars, cache: Cache | None) -> list[Path]:
    folder = jars.folder(_checked(cache))
    found = sorted(folder.glob("*.jar"))
    if not found:
        raise _not_set_up(folder)
    return found


def _checked(cache: Cache | None) -> Cache:
    found = cache or Cache.of_user()
    found.check_layout()
    return found


def _not_set_up(path: Path) -> NotSetUp:
    return NotSetUp(path=str(path), need="what penstock setup fetches", fix="penstock setup, or ./scripts/setup in a checkout")
