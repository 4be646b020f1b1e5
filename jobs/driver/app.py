"""The app of a job: its folders on the module path, and the call of its ``build``."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from penstock.jobs.driver.exception_text import remedy, said
from penstock.jobs.driver.root_cause import OwnCode, of_exception
from penstock.jobs.driver.sql_app import declare
from penstock.jobs.job import Job
from penstock.jobs.spec import SpecFile
from penstock.jobs.spec.app_module import find, is_sql
from penstock.jobs.stream.declaration import building
from penstock.jobs.stream.errors import AppFailed
from penstock.sizing.errors import PenstockError, Place


def importable(folders: tuple[str, ...]) -> None:
    """Puts the folders of the app and of its packages first on sys.path, for this process and for the Python workers that its JVM starts.

    Workers of executors have the app's folders by their own environment; `penstock.jobs.driver.session` gives them the packages.
    """
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
        job.tags, job.places = names.tags, names.places
        if is_sql(app):
            declare(find(app, spec.path.parent, [Path(folder) for folder in app_path]), job)
            return None
        return _declared_by(app, job, spec, app_path)


def _declared_by(app: str, job: Job, spec: SpecFile, app_path: Sequence[str]) -> ModuleType:
    with _failures(app, "a module that can be imported", spec, app_path):
        module = importlib.import_module(app)
    with _failures(app, "a build(job) that returns", spec, app_path):
        module.build(job)
    return module


@contextmanager
def _failures(app: str, need: str, spec: SpecFile, app_path: Sequence[str]) -> Iterator[None]:
    """Reports exceptions with their place in the team's code; without one there is no such app."""
    try:
        yield
    except PenstockError as error:
        for fault in error.errors:
            fault.at = fault.at or of_exception(error, own_code(spec, app_path)).at
        raise
    except (Exception, SystemExit) as error:
        own = own_code(spec, app_path)
        at, given = of_exception(error, own).at, said(error)
        if at is None:
            need, fix = "a module with a function build(job)", "define it, or check the driver's log"
            at = Place(file=str(own.app)) if own.app is not None else None
        else:
            fix = remedy(error) or "correct the app there"
        raise AppFailed(path=app, given=given, need=need, fix=fix, at=at) from error


def own_code(spec: SpecFile, app_path: Sequence[str]) -> OwnCode:
    """The files of a job's app."""
    module = sys.modules.get(spec.job.spec.app)
    file = getattr(module, "__file__", None)
    folders = (spec.path.parent, *map(Path, app_path))
    return OwnCode(tuple(folder.resolve() for folder in folders), Path(file) if file else None)


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
