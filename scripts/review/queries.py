"""What the queries of a job keep as state, before a change and after it: Spark analyzes both versions of the app, and runs neither."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from penstock.jobs.spec import SpecFile
from penstock.jobs.storage.query_record import QueryRecord
from penstock.scripts.installation import app_packages
from penstock.scripts.progress import Steps
from penstock.sizing.errors import PenstockError


class App(NamedTuple):
    """A version of a job.

    Args:
        when: before or after the change, in words.
        spec: of the job.
        folders: of its app, besides that of the spec.
    """

    when: str
    spec: SpecFile
    folders: tuple[Path, ...]


class Analyzed(NamedTuple):
    """What Spark finds in an app: its queries, or why it has none."""

    queries: Mapping[str, QueryRecord] | None
    faults: tuple[PenstockError, ...] = ()


def analyzed(apps: Iterable[App], steps: Steps) -> list[Analyzed]:
    """Analyzes apps, each by itself; two may have the same names.

    Args:
        apps: in any number.
        steps: shows progress.

    Raises:
        PenstockError: TOOL-016, TOOL-020, Spark's jars are missing; TOOL-050.
    """
    # PySpark takes long to import.
    from penstock.jobs.driver.check import stored_queries
    from penstock.scripts.checking.session import analyzing

    asked = list(apps)
    packages = [app_packages.install(app_packages.checked(one.spec), steps) for one in asked]
    steps.line("review", "starting Spark, which analyzes the queries of the apps before and after the change")
    found: list[Analyzed] = []
    with analyzing(list(dict.fromkeys(jar for one in packages for jar in one.jars))) as (session, folder):
        for app, installed in zip(asked, packages, strict=True):
            with steps.at("review", f"{app.spec.job.metadata.name} {app.when} the change"):
                try:
                    found.append(Analyzed(stored_queries(app.spec, app.folders, session, folder, installed.path)))
                except PenstockError as error:
                    found.append(Analyzed(None, error.errors))
    return found
