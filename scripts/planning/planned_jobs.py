"""From the words of a command line to plans: which spec, which environment, whose prices."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from penstock.infra.cluster import cluster
from penstock.infra.environment import Environment
from penstock.infra.environment_file import load as load_environment
from penstock.infra.job_specs import spec_in
from penstock.jobs.spec import SpecFile
from penstock.jobs.targets import targets
from penstock.scripts.installation import app_packages
from penstock.scripts.planning.app_path import add_app_path_argument, folders_of_apps
from penstock.scripts.planning.files_input import AskedFiles, files_of
from penstock.scripts.planning.price_files import catalog_file, prices_file
from penstock.sizing.catalog.catalog import unknown
from penstock.sizing.catalog.errors import NoShippedCatalog
from penstock.sizing.cluster import Cluster
from penstock.sizing.plan import plan
from penstock.sizing.planned import Plan
from penstock.sizing.targets import Targets


class Where(NamedTuple):
    """An environment, and what sizing knows of it; no cluster: it has none."""

    environment: Environment
    cluster: Cluster | None


class PlannedJob(NamedTuple):
    """A job in an environment."""

    spec: SpecFile
    targets: Targets
    where: Where
    plan: Plan

    @property
    def has_app(self) -> bool:
        """Whether its app was found."""
        return self.targets.has_app

    @property
    def name(self) -> str:
        """The job's name."""
        return self.spec.job.metadata.name


def add_planning_arguments(parser: argparse.ArgumentParser) -> None:
    """``--app-path`` and ``--catalog``."""
    add_app_path_argument(parser)
    parser.add_argument(
        "--catalog", type=Path, metavar="FILE", help="snapshot written by `penstock catalog refresh`; overrides the environment's prices"
    )


def add_prices_argument(parser: argparse.ArgumentParser) -> None:
    """``--prices``, for what makes a bill."""
    parser.add_argument(
        "--prices", type=Path, metavar="FILE", help="prices other than those of instances, in the format of the shipped file"
    )


def where(environment_name: str, catalog: Path | None = None, prices: Path | None = None, *, partial: bool = False) -> Where:
    """The environment of a name.

    Args:
        environment_name: a shipped environment's, or a file's path.
        catalog: instance types and their prices in place of the environment's own.
        prices: of everything else, likewise.
        partial: whether plans without nodes will do where the region's instance types are not known.

    Raises:
        PenstockError: INF-001, INF-004, INF-005, SIZ-051, SIZ-030 or SIZ-031, or what is wrong in the file.
    """
    environment = load_environment(environment_name)
    own = catalog_file(catalog) if catalog else None
    own_prices = prices_file(prices) if prices else None
    try:
        return Where(environment, cluster(environment, own, own_prices))
    except NoShippedCatalog:
        if not partial:
            raise
        return Where(environment, cluster(environment, unknown(environment.spec.region), own_prices))


def planned_job(
    spec: Path,
    location: Where,
    app_path: Sequence[Path] = (),
    *,
    app_required: bool = False,
    profile: Path | None = None,
    files: Sequence[AskedFiles] = (),
) -> PlannedJob:
    """The plan of a spec in an environment.

    Args:
        spec: its path.
        location: the environment.
        app_path: folders of the app, in addition to those of the environment.
        app_required: whether an app that is not found is an error; otherwise a note of the plan.
        profile: a file of `penstock profile`, in place of the load's throughput.
        files: what sources of files read, in place of the spec's `input`.

    Raises:
        PenstockError: whatever is wrong in the spec, its app, its targets or its profile.
    """
    spec_file = spec_in(location.environment, spec)
    folders, read = folders_of_apps(app_path, location.environment), files_of(files, spec_file)
    wanted = targets(spec_file, folders, app_required=app_required, profile=profile, files=read)
    app_packages.checked(spec_file)
    return PlannedJob(spec_file, wanted, location, plan(wanted, location.cluster))
