"""Where the set-up has put what Penstock needs: the jars and cdktf-cli."""

from __future__ import annotations

import os
from pathlib import Path

from penstock.scripts.errors import NotSetUp

# The checkout that this module lies in.
ROOT = Path(__file__).resolve().parent.parent


def spark_jars(root: Path = ROOT) -> list[Path]:
    """The jars that Spark gets beside PySpark's own: the Kafka source, s3a and what it needs of the AWS SDK.

    Args:
        root: the checkout.

    Returns:
        Absolute paths, sorted by name.

    Raises:
        NotSetUp: TOOL-020, there are none.
    """
    return _jars(root, "spark")


def kafka_classpath(root: Path = ROOT) -> str:
    """The class path of the Kafka broker and of its storage tool, for ``java -cp``.

    Args:
        root: the checkout.

    Returns:
        Absolute paths of jars, sorted by name, with the separator of this system between them.

    Raises:
        NotSetUp: TOOL-020, there are no jars.
    """
    return os.pathsep.join(str(jar) for jar in _jars(root, "kafka"))


def cdktf(root: Path = ROOT) -> Path:
    """The ``cdktf`` command of this checkout.

    Args:
        root: the checkout.

    Returns:
        An absolute path.

    Raises:
        NotSetUp: TOOL-020, it is not there.
    """
    command = root / ".penstock" / "node" / "node_modules" / ".bin" / "cdktf"
    if not command.exists():
        raise _not_set_up(command)
    return command


def _jars(root: Path, jar_set: str) -> list[Path]:
    folder = root / ".penstock" / "jars" / jar_set
    jars = sorted(folder.glob("*.jar"))
    if not jars:
        raise _not_set_up(folder)
    return jars


def _not_set_up(path: Path) -> NotSetUp:
    return NotSetUp(path=str(path), need="what the set-up of this checkout makes", fix="./scripts/setup")
