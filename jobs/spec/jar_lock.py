"""A lock of an app's jars: Maven coordinates, or files beside the lock, each with its SHA-256::

    org.apache.datasketches:datasketches-java:6.1.1 --hash=sha256:...
    libs/our-functions.jar --hash=sha256:...

Each jar is named; none brings its dependencies along.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.jobs.spec.errors import LockedFileDiffers, PackageOfTheJobs
from penstock.jobs.spec.lock_lines import LockLine, lock_file
from penstock.jobs.spec.python_lock import digest
from penstock.jobs.spec.reading import SpecFile
from penstock.sizing.errors import PenstockError, Place, raise_all

# Source: Maven's "Naming Conventions"; in the order of Maven's own short form without the packaging.
_COORDINATES = re.compile(r"(?P<group>[\w.-]+):(?P<artifact>[\w.-]+):(?:(?P<classifier>[\w.-]+):)?(?P<version>[\w.+-]+)")
_RANGE = re.compile(r"[\[(].*[\])]$|.*-SNAPSHOT$|LATEST$|RELEASE$")
_SHAPE = "group:artifact:version --hash=sha256:..., or a path of a .jar beside the lock with its hash"


@dataclass(frozen=True)
class LockedJar:
    """One jar.

    Args:
        name: of its file.
        given: coordinates, or the path as in the lock.
        sha256: its checksum, hexadecimal.
        coordinates: group, artifact, classifier and version; None for a file.
        file: the file beside the lock; None for coordinates.
        at: its place.
    """

    name: str
    given: str
    sha256: str
    coordinates: tuple[str, str, str, str] | None
    file: Path | None
    at: Place

    @property
    def artifact(self) -> str:
        """Its file's name without a version."""
        return artifact(self.name)

    @property
    def identity(self) -> str:
        """What must be in a lock once: the artifact, and its classifier."""
        if self.coordinates is None:
            return self.artifact
        _, name, classifier, _ = self.coordinates
        return f"{name}:{classifier}" if classifier else name


@dataclass(frozen=True)
class JarLock:
    """A lock.

    Args:
        file: its path.
        jars: in the order of the file.
    """

    file: Path
    jars: tuple[LockedJar, ...]

    @property
    def key(self) -> str:
        """The beginning of the SHA-256 of the jars' names and checksums."""
        rows = sorted(f"{jar.name} {jar.sha256}\n" for jar in self.jars)
        return hashlib.sha256("".join(rows).encode()).hexdigest()[:16]


def artifact(name: str) -> str:
    """The name of a jar's file without its version: ``kafka-clients`` of ``kafka-clients-3.9.2.jar``."""
    return re.sub(r"(-[0-9][^/]*)?\.jar$", "", name)


def jar_lock(spec: SpecFile, known: Mapping[str, str] | None = None) -> JarLock | None:
    """The lock of a spec's jars; None if it has none.

    Args:
        spec: the spec.
        known: artifact -> name of its jar, of the jars that every job has.

    Raises:
        PenstockError: SPEC-060 to SPEC-063; several are raised as `Faults`.
    """
    name = spec.job.spec.packages.jars
    if name is None:
        return None
    file, lines = lock_file(spec, name, ("spec", "packages", "jars"))
    jars: list[LockedJar] = []
    faults: list[PenstockError] = []
    for line in lines:
        found = _jar(line, file.parent)
        faults.extend([found] if isinstance(found, PenstockError) else line.faults)
        if isinstance(found, LockedJar):
            jars.append(found)
    differing = [fault for jar in jars if jar.sha256 for fault in _differing(jar)]
    raise_all([*faults, *_named_twice(jars), *_known_jars(jars, known or {}), *differing])
    return JarLock(file, tuple(jars))


def _known_jars(jars: list[LockedJar], known: Mapping[str, str]) -> Iterator[PenstockError]:
    """SPEC-062 for each jar that every job has, in whatever version."""
    for jar in jars:
        if jar.artifact in known:
            need = f"jars that no job has yet; every job has {known[jar.artifact]}"
            fix = "remove it, and use a version of what needs it that fits"
            yield PackageOfTheJobs(given=jar.name, need=need, fix=fix, at=jar.at)


def _jar(line: LockLine, folder: Path) -> LockedJar | PenstockError:
    checksums = [given.removeprefix("sha256:") for given in line.hashes if given.startswith("sha256:")]
    if len(checksums) != 1 and not line.faults:
        return line.refused(need="the SHA-256 of the one jar: --hash=sha256:...", fix="add the line's hash: sha256sum JAR")
    checksum = next(iter(checksums), "")
    if line.text.endswith(".jar") and ":" not in line.text and not line.text.startswith("/"):
        file = folder / line.text
        return LockedJar(file.name, line.text, checksum, None, file, line.at)
    parts = _COORDINATES.fullmatch(line.text)
    if parts is None or _RANGE.match(parts["version"]):
        return line.refused(need=_SHAPE, fix="use one released version, without a range")
    group, name, classifier, version = parts["group"], parts["artifact"], parts["classifier"] or "", parts["version"]
    jar = f"{'-'.join(part for part in (name, version, classifier) if part)}.jar"
    return LockedJar(jar, line.text, checksum, (group, name, classifier, version), None, line.at)


def _named_twice(jars: list[LockedJar]) -> Iterator[PenstockError]:
    """Two versions of one jar: which one a class is loaded from would be chance."""
    first: dict[str, LockedJar] = {}
    for jar in jars:
        before = first.setdefault(jar.identity, jar)
        if before is not jar:
            need = f"each jar once; line {before.at.line} has {before.name}"
            yield LockLine(jar.given, (), jar.at).refused(need=need, fix="keep one of them")


def _differing(jar: LockedJar) -> Iterator[PenstockError]:
    if jar.file is None:
        return
    if not jar.file.is_file():
        yield LockedFileDiffers(given=jar.given, need="a jar, relative to the lock", fix="build it, or correct the path", at=jar.at)
    elif digest(jar.file) != f"sha256:{jar.sha256}":
        fix = "put the locked jar there, or correct the hash after a review of the new one"
        yield LockedFileDiffers(given=f"{jar.given} with {digest(jar.file)}", need=f"sha256:{jar.sha256}", fix=fix, at=jar.at)
    elif not zipfile.is_zipfile(jar.file):
        yield LockedFileDiffers(given=jar.given, need="a jar", fix="build it again, and lock it", at=jar.at)
