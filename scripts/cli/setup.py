"""``penstock setup``: downloads the dependencies that are not Python packages (the jars of Spark and of the Kafka broker, cdktf-cli) to
the user's cache, and builds Penstock's own jar for Spark there.
"""

from __future__ import annotations

import argparse

from penstock.scripts.errors import NotSetUp
from penstock.scripts.installation import setting_up
from penstock.scripts.installation.cache import VARIABLE, Cache
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning import machine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.epilog = (
        f"The cache is {Cache.of_user().folder}; {VARIABLE} names another. It serves all projects of this user. What is there already "
        "stays, and an interrupted set-up goes on when it is run again."
    )
    parser.add_argument("--check", action="store_true", help="report what is missing and how much would be downloaded, and change nothing")


def run(arguments: argparse.Namespace) -> int:
    """Downloads what is missing.

    Returns:
        0; failures are raised.

    Raises:
        PenstockError: TOOL-001 for a missing tool, TOOL-011 to TOOL-017 for what cannot be downloaded, built or stored, TOOL-020 with
            ``--check`` if something is missing.
    """
    cache = Cache.of_user()
    missing = setting_up.due(cache, setting_up.entries())
    if missing and arguments.check:
        given = ", ".join(f"{entry.title} (up to {entry.download_mb} MB)" for entry in missing)
        need = "what local runs and deploys need beside Python packages"
        raise NotSetUp(path=str(cache.folder), given=f"without {given}", need=need, fix="penstock setup")
    if missing:
        for tool in dict.fromkeys(entry.tool for entry in missing):
            machine.require(tool)
        setting_up.fetch(cache, missing, Steps())
    print(f"jars and cdktf-cli are in {cache.folder}")
    return 0
