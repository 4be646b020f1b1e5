"""Output for programs: one JSON or YAML document on standard output, a plan or a list of errors."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from penstock.sizing.errors import PenstockError
from penstock.sizing.planned import SCHEMA_VERSION

FORMATS = ("table", "json", "yaml")


def add_output_argument(parser: argparse.ArgumentParser, formats: Sequence[str] = FORMATS) -> None:
    """Adds ``-o``: the first format is the default."""
    parser.add_argument("-o", "--output", choices=formats, default=formats[0], help=f"output format (default: {formats[0]})")


def wants_json(argv: Sequence[str]) -> bool:
    """Whether a command line asks for JSON, even if it is otherwise invalid: its errors are then JSON too."""
    words = list(argv[: argv.index("--")] if "--" in argv else argv)
    separate = any(option in ("-o", "--output") and value == "json" for option, value in pairwise(words))
    return separate or any(word in ("-ojson", "-o=json", "--output=json") for word in words)


def as_text(document: Mapping[str, Any], output: str) -> str:
    """A document as JSON or YAML, with a trailing newline."""
    if output == "json":
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    import yaml  # only here, so that a table needs no YAML writer

    return yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True, width=120)


def errors_document(error: PenstockError) -> dict[str, Any]:
    """An error, or several, as ``-o json`` prints them."""
    return {"schemaVersion": SCHEMA_VERSION, "errors": [fault.as_json() for fault in error.errors]}
