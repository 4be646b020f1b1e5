"""``penstock image``: the jobs' image with a team's apps and their packages, or the folder that it is built from without them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from penstock.infra.app_packages import AppPackages
from penstock.infra.environment_file import load as load_environment
from penstock.infra.image_lock import FILE
from penstock.jobs.spec import load
from penstock.scripts.cli.environment_argument import add_environment_option
from penstock.scripts.errors import WrongUsage
from penstock.scripts.image import image_name
from penstock.scripts.image.build import Request, build_with_apps, write_context
from penstock.scripts.image.context import DOCKERFILE
from penstock.scripts.image.digests import lock
from penstock.scripts.installation.app_packages import checked
from penstock.scripts.progress import Steps


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    actions = parser.add_subparsers(dest="action", required=True)
    build = actions.add_parser("build", help="build the image with buildah, and push it or write it to an archive")
    add_environment_option(build, None, more="its jobs' packages, and its appPath without --app", default_text="none")
    add = build.add_argument
    add("--app", action="append", type=Path, default=[], metavar="PATH", help="folder of modules, packages and SQL, or wheel; repeatable")
    add("--tag", required=True, metavar="NAME:TAG", help="name and tag of the image")
    add("--file", type=Path, metavar="FILE", help="write the image to an archive, which docker load takes")
    add("--push", action="store_true", help="push the image to the registry of its name")
    add("--assembled-bases", action="store_true", help="assemble the base images from packages where no image registry is reached")
    digests = actions.add_parser("lock", help=f"record the digests of others' images and charts in {FILE} of the current folder")
    add_environment_option(digests, None, more="its mirrors and versions", default_text="required")
    folder = actions.add_parser("context", help="write the folder that Docker builds the image without apps from")
    add_environment_option(folder, None, more="its jobs' packages", default_text="none")
    folder.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where it is written; what is there is replaced")


def run(arguments: argparse.Namespace) -> int:
    """Builds the image, writes its context, or records the digests of others' images.

    Returns:
        0; mistakes are raised.

    Raises:
        PenstockError: IMG-001 to IMG-010, DEP-057 to DEP-059, and whatever is wrong with the environment, a spec or a lock.
    """
    if arguments.action == "lock":
        return _lock(arguments)
    spec = load_environment(arguments.environment).spec if arguments.environment else None
    packages = [checked(load(path)) for path in spec.job_paths] if spec else []
    if arguments.action == "context":
        return _context(arguments.out, packages)
    image = image_name.checked(arguments.tag)
    apps = arguments.app or (list(map(Path, spec.app_path)) if spec else [])
    if not apps:
        raise WrongUsage(given="no app", need="--app, or --environment ENV with an appPath", fix="--app FOLDER")
    request = Request(image, apps, packages, arguments.assembled_bases, arguments.file, arguments.push)
    with Steps().at("image", "building it with buildah") as step:
        built = build_with_apps(request, lambda said: step.watch(said))
        step.said = "built and pushed" if built.digest else "built"
    print(f"{image}: {built.size_bytes / 1e6:.0f} MB")
    if built.digest:
        print(f"pushed as {image.rpartition(':')[0]}@{built.digest}")
    print(f"deploy with PENSTOCK_IMAGE_TAG={image.rpartition(':')[2]}, or registry.imageTag of the environment")
    return 0


def _lock(arguments: argparse.Namespace) -> int:
    if not arguments.environment:
        raise WrongUsage(given="no environment", need="the environment whose versions and mirrors are asked", fix="--environment ENV")
    environment = load_environment(arguments.environment)
    with Steps().at("digests", "asking the registries") as step:
        found = lock(environment, Path.cwd(), lambda name: step.watch(f"asking for {name}"))
        step.said = f"{len(found.charts)} charts and {len(found.images)} images"
    for name, locked in [*found.charts.items(), *found.images.items()]:
        print(f"{name}@{locked.digest}")
    print(f"written to {FILE}: commit it, deploys use it")
    return 0


def _context(folder: Path, packages: Sequence[AppPackages]) -> int:
    if folder.exists() and not (folder / DOCKERFILE).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        need = "a folder that does not exist, is empty, or has an earlier context, which is replaced"
        raise WrongUsage(path="--out", given=str(folder), need=need, fix="name another one")
    with Steps().at("image", f"writing its context to {folder}") as step:
        found = write_context(folder, packages, lambda said: step.watch(said))
        step.said = "context written"
    print(f"{folder}: docker build -f {folder}/{DOCKERFILE} {folder}; checksum {found}")
    return 0
