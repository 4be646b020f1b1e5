"""The app of a job: its folders on the module path, and the call of its ``build``."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from penstock.jobs.driver.sql_app import declare
from penstock.jobs.errors import AppFailed
from penstock.jobs.job import Job
from penstock.jobs.spec import SpecFile
from penstock.jobs.spec.app_module import find, is_sql
from penstock.jobs.stream.declaration import building
from penstock.jobs.stream.task_errors import first_line
from penstock.sizing.errors import PenstockError


def importable(folders: tuple[str, ...]) -> None:
    """Puts the app's folders first on sys.path, for this process and for the Python workers that Spark starts."""
    for folder in reversed(folders):
        sys.path.insert(0, folder)
    known = [*folders, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(known))


def build(spec: SpecFile, app_path: Sequence[str], job: Job) -> ModuleType | None:
    """Calls the app's ``build``.

    Returns:
        Its module; None for an app in SQL.
    """
    app = spec.job.spec.app
    with building() as names:
        job.tags = names.tags
        if is_sql(app):
            declare(find(app, spec.path.parent, [Path(folder) for folder in app_path]), job)
            return None
        return _declared_by(app, job)


def _declared_by(app: str, job: Job) -> ModuleType:
    try:
        module = importlib.import_module(app)
        module.build(job)
        return module
    except PenstockError:
        raise
    except Exception as error:
        given = f"{type(error).__name__}: {first_line(error)}"
        raise AppFailed(path=app, given=given, need="a module with a function build(job)", fix="check the driver's log") from error


def source(spec: SpecFile, app_path: Sequence[str], module: ModuleType | None) -> Path | None:
    """The file of an app that has been built; None for a module without one, such as in an archive.

    Args:
        spec: the job's.
        app_path: folders of the app.
        module: the app's module; None for an app in SQL.
    """
    if module is None:
        return find(spec.job.spec.app, spec.path.parent, [Path(folder) for folder in app_path])
    path = Path(module.__file__ or "")
    return path if path.is_file() else None
