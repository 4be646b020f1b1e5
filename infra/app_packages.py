"""An app's own packages beside those of the jobs' image, and where the image has them.

The image has a folder for each lock that a job of the environment names, so that one image serves jobs with different packages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from urllib.parse import quote

from penstock.jobs.errors import Contradiction
from penstock.jobs.spec import SpecFile
from penstock.jobs.spec.jar_lock import JarLock, jar_lock
from penstock.jobs.spec.python_lock import PythonLock, python_lock
from penstock.sizing.errors import PenstockError, raise_all

# The folder of the image with a folder for each lock.
PACKAGES = "/opt/penstock/packages"
# Not in the image's lock: Spark's own image has them.
SPARKS_OWN = {"pyspark": frozenset({"4.3.0"}), "py4j": frozenset({"0.10.9.9"})}
JARS_CONF = "spark.jars"


@dataclass(frozen=True)
class AppPackages:
    """What an app has in addition to what every job has.

    Args:
        python: the lock without the packages of the image; None if nothing is left.
        jars: the lock of its jars; None if it has none.
    """

    python: PythonLock | None = None
    jars: JarLock | None = None

    @property
    def path(self) -> tuple[str, ...]:
        """The folder of its Python packages in the image."""
        return () if self.python is None else (f"{PACKAGES}/{self.python.key}/python",)

    @property
    def spark_conf(self) -> dict[str, str]:
        """The setting with its jars in the image."""
        return {} if self.jars is None else jars_conf(f"{PACKAGES}/{self.jars.key}/jars/{jar.name}" for jar in self.jars.jars)


def jars_conf(paths: Iterable[str]) -> dict[str, str]:
    """The setting by which the driver and the executors load jars.

    Args:
        paths: absolute paths, the same for all of them.
    """
    # local: each process opens its own file; nothing is sent from the driver.
    joined = ",".join(f"local:{quote(path)}" for path in paths)
    return {JARS_CONF: joined} if joined else {}


def app_packages(spec: SpecFile, known_jars: Mapping[str, str] | None = None) -> AppPackages:
    """The packages of a spec, checked against those of the image.

    Args:
        spec: the spec.
        known_jars: artifact -> name of its jar, of the jars that every job has, where they are known.

    Raises:
        PenstockError: SPEC-008 for jars in ``sparkConf`` too, SPEC-060 to SPEC-063; several are raised as `Faults`.
    """
    faults: list[PenstockError] = []
    python = jars = None
    try:
        python = python_lock(spec, image_packages())
    except PenstockError as error:
        faults.extend(error.errors)
    try:
        jars = jar_lock(spec, known_jars)
    except PenstockError as error:
        faults.extend(error.errors)
    if spec.job.spec.packages.jars is not None and JARS_CONF in spec.job.spec.spark_conf:
        fault = Contradiction(need="no value: packages.jars sets it", fix="add the jars to the lock")
        faults.append(spec.document.locate(fault, ("spec", "sparkConf", JARS_CONF)))
    raise_all(faults)
    return AppPackages(python if python is not None and python.packages else None, jars)


@cache
def image_packages() -> Mapping[str, frozenset[str]]:
    """Name -> versions of the Python packages of the image, one version for each version of Python."""
    versions: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([a-z0-9-]+)==(\S+)", _image_lock(), re.MULTILINE):
        versions.setdefault(name, set()).add(version)
    return {**{name: frozenset(some) for name, some in versions.items()}, **SPARKS_OWN}


def constraints() -> str:
    """The packages of the image as constraints for a lock, one a line."""
    rows = re.findall(r"^([a-z0-9-]+==\S+(?: ; .+?)?) *\\?$", _image_lock(), re.MULTILINE)
    own = [f"{name}=={version}" for name, versions in SPARKS_OWN.items() for version in versions]
    return "".join(f"{row}\n" for row in sorted([*rows, *own]))


def _image_lock() -> str:
    return (files("penstock.infra") / "image" / "image.lock").read_text(encoding="utf-8")
