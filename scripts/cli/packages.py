"""``penstock packages``: checks the locks of apps' own packages, and prepares them for the build of the jobs' image."""

from __future__ import annotations

import argparse
from pathlib import Path

from penstock.infra.app_packages import AppPackages, constraints
from penstock.infra.environment_file import load as load_environment
from penstock.jobs.spec import SpecFile, load
from penstock.scripts.cli.environment_argument import add_environment_option
from penstock.scripts.errors import WrongUsage
from penstock.scripts.installation.app_packages import checked
from penstock.scripts.installation.image_packages import write
from penstock.scripts.progress import Steps
from penstock.sizing.errors import PenstockError, raise_all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument("specs", nargs="*", type=Path, metavar="SPEC", help="job spec; repeatable")
    add_environment_option(parser, None, more="the jobs that it names", default_text="none")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write what the build of the image takes, dist/packages for the Dockerfile")
    parser.add_argument("--constraints", action="store_true", help="print the packages that every job has, as constraints for a lock")


def run(arguments: argparse.Namespace) -> int:
    """Checks the locks, and with ``--out`` writes the folder for the image.

    Returns:
        0; mistakes are raised.

    Raises:
        PenstockError: whatever is wrong with a spec or a lock.
    """
    if arguments.constraints:
        print(constraints(), end="")
        return 0
    paths = [*arguments.specs, *(load_environment(arguments.environment).spec.job_paths if arguments.environment else ())]
    if not paths:
        raise WrongUsage(need="a SPEC, --environment ENV or --constraints", fix="name the job specs")
    found: list[tuple[SpecFile, AppPackages]] = []
    faults: list[PenstockError] = []
    for path in paths:
        try:
            spec = load(path)
            found.append((spec, checked(spec)))
        except PenstockError as error:
            faults.extend(error.errors)
    raise_all(faults)
    for spec, own in found:
        print(f"{spec.job.metadata.name}: {_said(spec, own)}")
    if arguments.out is not None:
        written = write([own for _, own in found], arguments.out, Steps())
        print(f"{arguments.out}: {', '.join(written) or 'no locks'}")
    return 0


def _said(spec: SpecFile, own: AppPackages) -> str:
    python = [] if own.python is None else [f"{one.name} {one.version}" for one in own.python.packages]
    jars = [] if own.jars is None else [jar.name for jar in own.jars.jars]
    asked = spec.job.spec.packages
    if asked.python is None and asked.jars is None:
        return "no packages of its own"
    return ", ".join([*python, *jars]) or "only packages that every job has"
