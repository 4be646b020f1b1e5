"""Gives Spark one class path of a fixed order, in the image's build: ``python class_path.py /opt/spark/jars log4j2.properties [JAR...]``.

Spark's launcher and its entry point start drivers and executors with ``jars/*``, whose order is that of the node's file system, and an
archive of classes belongs to one order (decision 0030). So that folder gets one jar, whose manifest lists the others in a folder below.
The jar has the log configuration too: an archive does not fit where a folder of the class path, as Spark's ``conf/`` is, has files.
"""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from pathlib import Path

NAME = "spark-class-path.jar"
FOLDER = "lib"
# Of all jars: an archive notes it of each, and layers round what is no whole second. Source of the date: the jar of the JVM's classes.
TIME_S = 1_767_225_600
_ENTRY_TIME = (2026, 1, 1, 0, 0, 0)
# Source: the JAR specification, on lines of a manifest.
_LINE_BYTES = 72


def main(jars: Path, log_configuration: Path, added: list[str]) -> None:
    """Moves the jars and writes the one that lists them.

    Args:
        jars: Spark's folder.
        log_configuration: of Log4j. One in `conf/` of Spark, which is before it on the class path, replaces it.
        added: names of jars that a later layer adds to the folder below.
    """
    folder = jars / FOLDER
    folder.mkdir()
    for jar in jars.glob("*.jar"):
        os.utime(shutil.move(jar, folder), (TIME_S, TIME_S))
    # The logging interface first, as Spark's launcher has it.
    names = sorted({*added, *(jar.name for jar in folder.iterdir())}, key=lambda name: (not name.startswith("slf4j-api-"), name))
    with zipfile.ZipFile(jars / NAME, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF", _ENTRY_TIME), manifest(names))
        archive.writestr(zipfile.ZipInfo(log_configuration.name, _ENTRY_TIME), log_configuration.read_bytes())
    (jars / NAME).chmod(0o644)
    os.utime(jars / NAME, (TIME_S, TIME_S))


def manifest(names: list[str]) -> bytes:
    """The manifest of a jar that lists others.

    Args:
        names: of the jars, in the folder below.
    """
    listed = "Class-Path: " + " ".join(f"{FOLDER}/{name}" for name in names)
    lines = ["Manifest-Version: 1.0"]
    while listed:
        lines.append(listed[: _LINE_BYTES - 2])
        # A line that goes on begins with a space.
        listed = listed[_LINE_BYTES - 2 :] and " " + listed[_LINE_BYTES - 2 :]
    return "\r\n".join([*lines, "", ""]).encode("ascii")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
