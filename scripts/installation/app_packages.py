"""An app's own Python packages and jars in the user's cache, from the locks that its spec names."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from xml.sax.saxutils import escape

from penstock.infra.app_packages import AppPackages, app_packages
from penstock.jobs.spec.errors import PackageOfTheJobs
from penstock.jobs.spec.jar_lock import JarLock, LockedJar, artifact
from penstock.jobs.spec.python_lock import LockedPackage, PythonLock
from penstock.jobs.spec.reading import SpecFile
from penstock.scripts.errors import AppJarsNotFetched, AppPackagesNotInstalled
from penstock.scripts.installation import locks, pip_settings, setting_up, tool, tool_environment
from penstock.scripts.installation.cache import Cache
from penstock.scripts.installation.entry import Entry
from penstock.scripts.installation.jars import checksums
from penstock.scripts.installation.tool import Progress
from penstock.scripts.progress import Steps
from penstock.sizing.errors import PenstockError, raise_all

# Only wheels: the image, for which the same lock is installed, has no compiler.
_INSTALL = ("--require-hashes", "--no-deps", "--only-binary", ":all:")
# The version of the set-up's own POMs.
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
# Of packages that every job has, those that others are known to bring too.
_MODULES = ("penstock", "pyspark", "py4j", "pyarrow", "pandas", "numpy")
_LIMIT_S = tool_environment.INSTALL_LIMIT_S


@dataclass(frozen=True)
class InstalledPackages:
    """An app's packages on this machine.

    Args:
        python: the folder of its Python packages; None if it has none.
        jars: its jars.
    """

    python: Path | None = None
    jars: tuple[Path, ...] = ()

    @property
    def path(self) -> tuple[Path, ...]:
        """Folders for the module search path."""
        return () if self.python is None else (self.python,)


class PythonPackages(Entry):
    """The packages of a lock, installed into a folder.

    Args:
        lock: without the packages that every job has.
    """

    def __init__(self, lock: PythonLock) -> None:
        super().__init__(name="app-packages", title=f"Python packages of {lock.file}", tool="pip", download_mb=0)
        self._lock = lock

    def key(self) -> str:
        """By the lock, and by the Python and the platform, which the wheels are for."""
        return locks.key(f"{self._lock.key} {sys.implementation.cache_tag} {os.uname().sysname} {os.uname().machine}".encode())

    def faults(self, folder: Path) -> list[str]:
        """Whether it is missing; an installation is put in place whole."""
        return [] if folder.is_dir() else [f"missing    {self.name}"]

    def fetch(self, into: Path, log: Path, progress: Progress) -> None:
        """Installs them, with uv if there is one, otherwise, or if it fails, with pip.

        Raises:
            AppPackagesNotInstalled: TOOL-040, with the line of the package that the tool names.
            PackageOfTheJobs: SPEC-062, a package brings a module of the jobs' under another name.
        """
        file = into.with_name(f"{into.name}.lock")
        file.write_text(self._lock.text(), encoding="utf-8")
        rest = ["--target", str(into), *_INSTALL, "-r", str(file)]
        said: list[str] = []
        for command, variables in self._installers():
            shutil.rmtree(into, ignore_errors=True)
            environment = {**tool_environment.own_variables(os.environ), **variables}
            ended = tool.run([*command, *rest], environment=environment, log=log, limit_s=_LIMIT_S, progress=progress)
            if ended.code == 0:
                # A lock whose markers all exclude this platform installs nothing.
                into.mkdir(exist_ok=True)
                raise_all(_shadowing(self._lock, into))
                return
            said.append(ended.said)
        raise self._not_installed("\n".join(said), log)

    def _installers(self) -> Iterable[tuple[list[str], Mapping[str, str]]]:
        if (uv := tool_environment.uv()) is not None:
            settings = pip_settings.variables(pip_settings.listed(sys.executable), os.environ)
            yield [uv, "pip", "install", "--python", sys.executable, "--link-mode", "copy"], {**settings, "UV_NO_PROGRESS": "1"}
        yield [sys.executable, "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--no-compile"], {}

    def _not_installed(self, said: str, log: Path) -> AppPackagesNotInstalled:
        package = _named(self._lock.packages, said)
        need = f"a wheel with a hash of the lock for Python {sys.version_info.major}.{sys.version_info.minor} on {os.uname().machine}"
        fix = "correct what the installer reports; lock again with uv pip compile --universal --generate-hashes"
        given = f"{package.requirement if package else self._lock.file}; the end of {log}:\n{said}"
        return AppPackagesNotInstalled(given=given, need=need, fix=fix, at=package.at if package else None)


class AppJars(Entry):
    """The jars of a lock: those with coordinates by Maven, copies of the others.

    Args:
        lock: the lock.
    """

    def __init__(self, lock: JarLock) -> None:
        super().__init__(name="app-jars", title=f"jars of {lock.file}", tool="mvn", download_mb=0)
        self._lock = lock

    def key(self) -> str:
        """By the jars' names and checksums."""
        return self._lock.key

    def faults(self, folder: Path) -> list[str]:
        """The jars that are missing or differ."""
        have = checksums(folder)
        return [f"missing or changed {jar.name}" for jar in self._lock.jars if have.get(jar.name) != jar.sha256]

    def fetch(self, into: Path, log: Path, progress: Progress) -> None:
        """Copies and downloads them.

        Raises:
            PenstockError: TOOL-041, with the line of the jar.
        """
        into.mkdir()
        for jar in self._lock.jars:
            if jar.file is not None:
                shutil.copy(jar.file, into / jar.name)
        coordinates = [jar for jar in self._lock.jars if jar.coordinates is not None]
        if coordinates:
            self._download(coordinates, into, log, progress)
        have = checksums(into)
        for jar in self._lock.jars:
            if (found := have.get(jar.name)) != jar.sha256:
                given = f"{jar.given} with sha256:{found}" if found else f"{jar.given}, not downloaded"
                fix = "correct the hash after a review of the jar, or remove a changed jar from Maven's local repository"
                raise AppJarsNotFetched(given=given, need=f"sha256:{jar.sha256}", fix=fix, at=jar.at)

    def _download(self, jars: Sequence[LockedJar], into: Path, log: Path, progress: Progress) -> None:
        pom = into.with_name(f"{into.name}.pom.xml")
        pom.write_text(_pom(jars), encoding="utf-8")
        goal = (COPY, f"-DoutputDirectory={into}", "-DexcludeTransitive=true")
        command = ["mvn", "-B", "-ntp", "-Dstyle.color=never", "-f", str(pom), *goal]
        ended = tool.run(command, environment=os.environ, log=log, cwd=into.parent, progress=progress)
        if ended.code != 0:
            named = [jar for jar in jars if jar.coordinates and jar.coordinates[1] in ended.said]
            jar = named[0] if named else jars[0]
            fix = "correct the coordinates, or configure the repository that has the jar, or a mirror, in Maven's settings.xml"
            given = f"{jar.given}; the end of {log}:\n{ended.said}"
            raise AppJarsNotFetched(given=given, need="coordinates that Maven resolves", fix=fix, at=jar.at)


def checked(spec: SpecFile) -> AppPackages:
    """The packages of a spec, checked against all that every job has. Installs nothing.

    Raises:
        PenstockError: SPEC-008, SPEC-060 to SPEC-063; several are raised as `Faults`.
    """
    return app_packages(spec, None if spec.job.spec.packages.jars is None else jars_of_every_job())


def install(packages: AppPackages, steps: Steps, cache: Cache | None = None) -> InstalledPackages:
    """Installs what is missing.

    Args:
        packages: of an app.
        steps: shows progress.
        cache: the user's by default.

    Raises:
        PenstockError: SPEC-062, TOOL-015, TOOL-016, TOOL-040, TOOL-041.
    """
    used = cache or Cache.of_user()
    python = None if packages.python is None else PythonPackages(packages.python)
    jars = None if packages.jars is None else AppJars(packages.jars)
    wanted: list[Entry] = [entry for entry in (python, jars) if entry is not None]
    if setting_up.due(used, wanted):
        setting_up.fetch(used, wanted, steps)
    return InstalledPackages(
        python=None if python is None else python.folder(used),
        jars=() if jars is None or packages.jars is None else tuple(jars.folder(used) / jar.name for jar in packages.jars.jars),
    )


def jars_of_every_job() -> dict[str, str]:
    """Artifact -> name of the jar, of those that Penstock adds to Spark and, where PySpark is installed, of Spark's own."""
    lines = (locks.folder() / "jars.sha256").read_text(encoding="utf-8").splitlines()
    names = [line.split("  ", 1)[1].removeprefix("spark/") for line in lines if "  spark/" in line]
    with contextlib.suppress(PackageNotFoundError):
        names.extend(path.name for path in Path(str(distribution("pyspark").locate_file("pyspark/jars"))).glob("*.jar"))
    return {artifact(name): name for name in names}


def _shadowing(lock: PythonLock, folder: Path) -> Iterator[PenstockError]:
    """SPEC-062 for packages with another name and a module of the jobs', as ``pyspark-client`` has ``pyspark``: it would come first."""
    for package in lock.packages:
        for info in folder.glob(f"{package.name.replace('-', '[-_.]')}-{package.version}.dist-info"):
            taken = [name for name in _MODULES if f"\n{name}/" in f"\n{(info / 'RECORD').read_text(encoding='utf-8')}"]
            if taken:
                need = f"packages without the modules that every job has; this one has {', '.join(taken)}"
                yield PackageOfTheJobs(given=package.requirement, need=need, fix="remove it from the lock", at=package.at)


def _named(packages: Sequence[LockedPackage], said: str) -> LockedPackage | None:
    """The package that the output of an installer is about: the first that it names."""
    places = {package: re.search(rf"(?<![\w.-]){package.name.replace('-', '[-_.]')}(?![\w])", said, re.IGNORECASE) for package in packages}
    found = [(match.start(), package) for package, match in places.items() if match is not None]
    return min(found, key=lambda one: one[0])[1] if found else None


def _pom(jars: Sequence[LockedJar]) -> str:
    """Each jar is listed, and brings nothing along."""
    rows = []
    for jar in jars:
        assert jar.coordinates is not None
        group, name, classifier, version = map(escape, jar.coordinates)
        more = f"<classifier>{classifier}</classifier>" if classifier else ""
        none = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
        parts = f"<groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>{more}{none}"
        rows.append(f"<dependency>{parts}</dependency>")
    head = '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
    own = "<groupId>io.penstock</groupId><artifactId>app-jars</artifactId><version>1</version><packaging>pom</packaging>"
    return f"{head}{own}<dependencies>{''.join(rows)}</dependencies></project>\n"
