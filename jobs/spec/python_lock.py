"""A lock of an app's Python packages: what ``uv pip compile --generate-hashes`` and ``pip-compile --generate-hashes`` write."""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.jobs.spec.errors import LockedFileDiffers, PackageOfTheJobs
from penstock.jobs.spec.lock_lines import LockLine, lock_file
from penstock.jobs.spec.reading import SpecFile
from penstock.sizing.errors import PenstockError, Place, raise_all

# Source: "Dependency specifiers" of Python's packaging specifications; here with exactly one version.
_PINNED = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?P<extras>\[[^\]]*\])? ?== ?(?P<version>[^\s;*,]+) ?(?:; ?(?P<marker>.+))?"
)
_OPTION = re.compile(r"(--find-links|-f|--index-url|-i|--extra-index-url)[= ](\S.*)")
_FIND_LINKS = ("--find-links", "-f")
_SHAPE = "name==version --hash=sha256:..."
_COMPILE = "uv pip compile --generate-hashes"


@dataclass(frozen=True)
class LockedPackage:
    """One package.

    Args:
        name: normalized: lower case, with hyphens.
        version: as in the lock.
        requirement: the line without its hashes.
        hashes: ``algorithm:digest`` of the files that may be installed.
        at: its place.
    """

    name: str
    version: str
    requirement: str
    hashes: tuple[str, ...]
    at: Place


@dataclass(frozen=True)
class PythonLock:
    """A lock.

    Args:
        file: its path.
        packages: in the order of the file.
        indexes: option and URL of the indexes that it names.
        links: folders with wheels that it names, and URLs of pages with links.
    """

    file: Path
    packages: tuple[LockedPackage, ...]
    indexes: tuple[tuple[str, str], ...] = ()
    links: tuple[Path | str, ...] = ()

    @property
    def key(self) -> str:
        """The beginning of the SHA-256 of the packages with their hashes: the same content has the same key."""
        rows = sorted(f"{package.requirement} {' '.join(sorted(package.hashes))}\n" for package in self.packages)
        return hashlib.sha256("".join(rows).encode()).hexdigest()[:16]

    @property
    def wheel_folders(self) -> tuple[Path, ...]:
        """The folders among the links."""
        return tuple(link for link in self.links if isinstance(link, Path))

    def text(self, folder: str | None = None) -> str:
        """The lock as pip and uv read it, anywhere.

        Args:
            folder: what stands for the folders with wheels; by default they themselves.
        """
        urls = [link for link in self.links if isinstance(link, str)]
        # As URLs: pip would split a path at its spaces.
        folders = [link.absolute().as_uri() for link in self.wheel_folders] if folder is None else [folder] * bool(self.wheel_folders)
        options = [*(f"{option} {url}" for option, url in self.indexes), *(f"--find-links {link}" for link in [*urls, *folders])]
        rows = [" \\\n    ".join([one.requirement, *(f"--hash={given}" for given in one.hashes)]) for one in self.packages]
        return "".join(f"{row}\n" for row in [*options, *rows])


def python_lock(spec: SpecFile, known: Mapping[str, frozenset[str]] | None = None) -> PythonLock | None:
    """The lock of a spec's Python packages; None if it has none.

    Args:
        spec: the spec.
        known: name -> versions of the packages that every job has, one for each version of Python. They are left out.

    Raises:
        PenstockError: SPEC-060 to SPEC-063; several are raised as `Faults`.
    """
    name = spec.job.spec.packages.python
    if name is None:
        return None
    file, lines = lock_file(spec, name, ("spec", "packages", "python"))
    packages: list[LockedPackage] = []
    options: list[tuple[str, str]] = []
    faults: list[PenstockError] = []
    for line in lines:
        option, package = _OPTION.fullmatch(line.text), _PINNED.fullmatch(line.text)
        faults.extend(line.faults)
        if option is not None:
            options.append((option[1], option[2]))
        elif package is not None and (line.hashes or line.faults):
            packages.append(LockedPackage(_normalized(package["name"]), package["version"], line.text, line.hashes, line.at))
        else:
            faults.append(_refused(line, pinned=package is not None))
    links = tuple(_link(file.parent, value) for option, value in options if option in _FIND_LINKS)
    indexes = tuple((option, value) for option, value in options if option not in _FIND_LINKS)
    lock = PythonLock(file, tuple(package for package in packages if package.name not in (known or {})), indexes, links)
    raise_all([*faults, *_conflicts(packages, known or {}), *_differing_wheels(lock)])
    return lock


def _conflicts(packages: Iterable[LockedPackage], known: Mapping[str, frozenset[str]]) -> Iterator[PenstockError]:
    """SPEC-062 for each package that every job has, in another version."""
    for package in packages:
        versions = known.get(package.name, frozenset({package.version}))
        if package.version not in versions:
            yield PackageOfTheJobs(
                given=f"{package.name}=={package.version}",
                need=f"{package.name}=={' or '.join(sorted(versions))}, which every job has",
                fix="lock again with the output of penstock packages --constraints as --constraint",
                at=package.at,
            )


def _normalized(name: str) -> str:
    """Source: Python's packaging specifications, "Names and normalization"."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _link(folder: Path, value: str) -> Path | str:
    return value if "://" in value else folder / value


def _refused(line: LockLine, *, pinned: bool) -> PenstockError:
    if pinned:
        return line.refused(need=f"hashes: {_SHAPE}", fix=f"write the lock with {_COMPILE}")
    if line.text.startswith("-"):
        need = "no option but --find-links, --index-url and --extra-index-url"
        return line.refused(need=need, fix="remove it; a lock is one file, with every package in it")
    if " @ " in line.text or "/" in line.text.split(";")[0]:
        fix = "publish it to an index, or put its wheel into a folder beside the lock that --find-links names"
        return line.refused(need=f"a package by name: {_SHAPE}", fix=fix)
    return line.refused(need=f"one version: {_SHAPE}", fix=f"write the lock with {_COMPILE}")


def _differing_wheels(lock: PythonLock) -> Iterator[PenstockError]:
    """SPEC-063 for folders that do not exist, and for packages whose wheels in them have other checksums or are none."""
    for folder in lock.wheel_folders:
        if not folder.is_dir():
            need, at = "a folder with wheels, relative to the lock", Place(file=str(lock.file))
            yield LockedFileDiffers(given=f"--find-links {folder}", need=need, fix="correct the path", at=at)
    for package in lock.packages:
        wheels = [wheel for folder in lock.wheel_folders for wheel in folder.glob("*.whl") if _is_of(wheel, package)]
        matching = [wheel for wheel in wheels if digest(wheel) in package.hashes]
        if wheels and not matching:
            given = ", ".join(f"{wheel.name} with {digest(wheel)}" for wheel in wheels)
            fix = "put the locked wheel there, or lock again after a review of the new one"
            yield LockedFileDiffers(given=given, need="a hash of the lock", fix=fix, at=package.at)
        for wheel in matching:
            if not _is_a_wheel(wheel):
                fix = "build the wheel again, and lock it"
                yield LockedFileDiffers(given=str(wheel), need="a wheel: a ZIP archive with *.dist-info/METADATA", fix=fix, at=package.at)


def digest(file: Path) -> str:
    """``sha256:...`` of a file."""
    with file.open("rb") as opened:
        return f"sha256:{hashlib.file_digest(opened, 'sha256').hexdigest()}"


def _is_of(wheel: Path, package: LockedPackage) -> bool:
    """By its file name. Source: Python's packaging specifications, "Binary distribution format"."""
    name, _, rest = wheel.name.partition("-")
    return _normalized(name) == package.name and rest.startswith(f"{package.version}-")


def _is_a_wheel(file: Path) -> bool:
    try:
        with zipfile.ZipFile(file) as archive:
            return any(name.endswith(".dist-info/METADATA") for name in archive.namelist())
    except (zipfile.BadZipFile, OSError):
        return False
