"""``penstock catalog``: the known instance types, the details of one, and a new snapshot from AWS."""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from penstock.infra.environment import REGION_PATTERN
from penstock.scripts.cli.output import add_output_argument, as_text
from penstock.scripts.errors import SnapshotNotWritten, WrongUsage, package_missing
from penstock.scripts.planning.price_files import catalog_file
from penstock.scripts.render import catalog_table
from penstock.scripts.render.screen import screen_of
from penstock.sizing.catalog.catalog import SHIPPED_REGION, Catalog, shipped
from penstock.sizing.catalog.instance_type import InstanceType


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    verbs = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = verbs.add_parser("list", help="list the shipped catalog and given snapshots", allow_abbrev=False)
    listing.add_argument("snapshots", nargs="*", type=Path, metavar="FILE", help="snapshot written by `refresh`")
    add_output_argument(listing)
    show = verbs.add_parser("show", help="show an instance type: resources, allocatable, labels, prices", allow_abbrev=False)
    show.add_argument("name", metavar="TYPE", help="instance type, for example m7g.xlarge")
    show.add_argument("--catalog", type=Path, metavar="FILE", help=f"snapshot (default: the shipped catalog of {SHIPPED_REGION})")
    add_output_argument(show)
    refresh = verbs.add_parser("refresh", help="fetch a region's instance types, on-demand and spot prices from AWS", allow_abbrev=False)
    refresh.add_argument("--region", required=True, type=_region, metavar="REGION", help="AWS region, for example eu-central-1")
    refresh.add_argument("--out", type=Path, metavar="FILE", help="output file (default: catalog.REGION.DATE.json in the current folder)")


def run(arguments: argparse.Namespace) -> int:
    """Runs the subcommand.

    Returns:
        0.
    """
    actions: dict[str, Callable[[argparse.Namespace], None]] = {"list": _list, "show": _show, "refresh": _refresh}
    actions[arguments.action](arguments)
    return 0


def _list(arguments: argparse.Namespace) -> None:
    catalogs = [("shipped", shipped()), *((str(path), catalog_file(path)) for path in arguments.snapshots)]
    if arguments.output == "table":
        sys.stdout.write(catalog_table.listing(catalogs, screen_of(sys.stdout, os.environ)))
    else:
        sys.stdout.write(as_text(catalog_table.listing_document(catalogs), arguments.output))


def _show(arguments: argparse.Namespace) -> None:
    known = catalog_file(arguments.catalog) if arguments.catalog else shipped()
    instance = _instance(known, arguments.name)
    if arguments.output == "table":
        sys.stdout.write(catalog_table.facts(known, instance, screen_of(sys.stdout, os.environ)))
    else:
        sys.stdout.write(as_text(catalog_table.facts_document(known, instance), arguments.output))


def _instance(known: Catalog, name: str) -> InstanceType:
    instance = known.get(name)
    if instance is None:
        close = difflib.get_close_matches(name, [kind.name for kind in known.types], n=3)
        fix = f"did you mean {' or '.join(close)}?" if close else "list the catalogs with: penstock catalog list"
        need = f"one of the {len(known.types):,} instance types of {known.region} ({known.date})"
        raise WrongUsage(given=f"the instance type {name}", need=need, fix=fix)
    return instance


def _refresh(arguments: argparse.Namespace) -> None:
    try:
        from penstock.scripts.planning.aws_catalog import fetch  # boto3 takes half a second, and only this needs it
        from penstock.scripts.progress import Steps
    except ModuleNotFoundError as error:
        raise package_missing("penstock catalog refresh", error, "deploy") from None
    now = datetime.now(UTC)
    out = arguments.out or Path(f"catalog.{arguments.region}.{now.date().isoformat()}.json")
    with _whole_file(out) as file:
        snapshot = fetch(arguments.region, now, Steps())
        file.write(snapshot.model_dump_json(indent=1) + "\n")
    print(out)


@contextmanager
def _whole_file(path: Path) -> Iterator[TextIO]:
    """A file that is replaced atomically."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        # Opened before AWS is called: a folder without write access is reported at once.
        with unfinished.open("w", encoding="utf-8") as file:
            yield file
        unfinished.replace(path)
    except OSError as error:
        need = "a writable file"
        raise SnapshotNotWritten(
            path=str(path), given=error.strerror or str(error), need=need, fix="specify another file with --out"
        ) from None
    finally:
        unfinished.unlink(missing_ok=True)


def _region(text: str) -> str:
    if not re.fullmatch(REGION_PATTERN, text):
        raise argparse.ArgumentTypeError(f"{text} is not an AWS region")
    return text
