"""``penstock schema``: the JSON Schema of the job spec, for editors."""

from __future__ import annotations

import argparse
import sys
from importlib.resources import files
from pathlib import Path

_FILE = "spec.schema.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--url", action="store_true", help="print the file:// URL of the installed schema, for an editor's settings")
    what.add_argument("--modeline", action="store_true", help="print the comment that refers an editor to the installed schema")


def run(arguments: argparse.Namespace) -> int:
    """Prints the schema, or where it is installed.

    Returns:
        0.
    """
    # The folder is a link in a checkout: an editor that opens the file should see where it is.
    file = Path(str(files("penstock.jobs"))).resolve() / _FILE
    if arguments.url:
        print(file.as_uri())
    elif arguments.modeline:
        print(f"# yaml-language-server: $schema={file.as_uri()}")
    else:
        sys.stdout.write(file.read_text(encoding="utf-8"))
    return 0
