"""The checks of several job specs in one Spark session."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from penstock.jobs.spec import SpecFile, load
from penstock.jobs.stream.errors import AppFailed
from penstock.jobs.targets import targets
from penstock.scripts import layout
from penstock.scripts.checking import passed
from penstock.scripts.installation import app_packages
from penstock.scripts.installation.app_packages import InstalledPackages
from penstock.scripts.progress import Steps
from penstock.sizing.errors import PenstockError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Set to "off", no verb but `check` checks apps.
VARIABLE = "PENSTOCK_CHECK"


class Asked(NamedTuple):
    """A spec to be checked.

    Args:
        spec: its path.
        app_path: folders of its app.
    """

    spec: Path
    app_path: tuple[Path, ...] = ()


class Checked(NamedTuple):
    """The result of a check.

    Args:
        spec: its path.
        faults: what is wrong; none if it has passed.
    """

    spec: Path
    faults: tuple[PenstockError, ...] = ()


def check_all(asked: Sequence[Asked], steps: Steps, read: Callable[[Path], SpecFile] = load) -> list[Checked]:
    """Checks specs, each by itself, and remembers those that pass.

    Args:
        asked: the specs, in any number.
        steps: shows progress.
        read: reads a spec, for faults of the document; by default as its file has it.

    Raises:
        PenstockError: TOOL-016, TOOL-020, Spark's jars are missing; TOOL-050.
    """
    # An invalid document needs no Spark to be found.
    unread = {one: _read(one, read) for one in asked}
    rest = [one for one, faults in unread.items() if not faults]
    analyzed = _analyzed(rest, steps) if rest else {}
    return [Checked(one.spec, unread[one] or analyzed[one]) for one in asked]


def _read(asked: Asked, read: Callable[[Path], SpecFile]) -> tuple[PenstockError, ...]:
    try:
        spec = read(asked.spec)
        targets(spec, asked.app_path)
        app_packages.checked(spec)
    except PenstockError as error:
        return error.errors
    return ()


def _analyzed(asked: Sequence[Asked], steps: Steps) -> dict[Asked, tuple[PenstockError, ...]]:
    # Imported here because a verb whose specs have all been checked needs no Spark.
    from penstock.scripts.checking.session import analyzing

    installed = {one: _installed(one.spec, steps) for one in asked}
    # One JVM has the jars of all apps.
    jars = list(dict.fromkeys(jar for packages, _ in installed.values() for jar in packages.jars))
    steps.line("check", "starting Spark, which analyzes the queries of the apps")
    with analyzing(jars) as (session, folder):
        results = {}
        for one, (packages, faults) in installed.items():
            with steps.at("check", str(one.spec)) as step:
                results[one] = faults or _of_one(one, packages, session, folder)
                step.said = f"{one.spec}: {_counted(results[one])}"
    return results


def _installed(spec: Path, steps: Steps) -> tuple[InstalledPackages, tuple[PenstockError, ...]]:
    """The app's own packages, and what is wrong with its locks."""
    try:
        return app_packages.install(app_packages.checked(load(spec)), steps), ()
    except PenstockError as error:
        return InstalledPackages(), error.errors


def _of_one(asked: Asked, packages: InstalledPackages, session: SparkSession, folder: Path) -> tuple[PenstockError, ...]:
    from penstock.jobs.driver.check import check

    try:
        # What an app prints while it is imported is not this command's output.
        with contextlib.redirect_stdout(sys.stderr):
            files = check(load(asked.spec), asked.app_path, session, folder, packages.path)
    except PenstockError as error:
        return error.errors
    except Exception as error:
        traceback.print_exc()
        return (_unforeseen(asked.spec, error),)
    passed.remember(asked.spec, asked.app_path, files)
    return ()


def unknown(asked: Sequence[Asked]) -> list[Asked]:
    """The specs that have to be checked before anything else is done with them: none where Spark is not installed, or if the variable
    PENSTOCK_CHECK is off.
    """
    if os.environ.get(VARIABLE) == "off" or not _has_spark():
        return []
    return [one for one in asked if not passed.is_known(one.spec, one.app_path)]


def _has_spark() -> bool:
    if find_spec("pyspark") is None or not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        return False
    try:
        layout.spark_jars()
    except PenstockError:
        return False
    return True


def _unforeseen(spec: Path, error: Exception) -> AppFailed:
    given = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
    return AppFailed(path=str(spec), given=given, need="queries that Spark can analyze", fix="see the traceback above")


def _counted(faults: Sequence[PenstockError]) -> str:
    return "passed" if not faults else f"{len(faults)} error" + ("s" if len(faults) > 1 else "")
