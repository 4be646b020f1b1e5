"""The files that a source reads, from the words of a command line: ``lines=16,2Gi``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import ValidationError

from penstock.jobs.spec import PlannedFiles, SpecFile
from penstock.scripts.errors import WrongUsage
from penstock.sizing.units import NotAQuantity

_FORM = "[SOURCE=]FILES,SIZE, such as lines=16,2Gi"


class AskedFiles(NamedTuple):
    """What ``--files`` says of a source; an empty name: the only one that reads files."""

    source: str
    files: PlannedFiles


def add_files_argument(parser: argparse.ArgumentParser) -> None:
    """``--files``."""
    parser.add_argument(
        "--files",
        type=_asked,
        action="append",
        default=[],
        metavar="[SOURCE=]N,SIZE",
        help="number and total size of the files that a source reads, in place of its `input` in the spec",
    )


def files_of(asked: Sequence[AskedFiles], spec: SpecFile) -> Mapping[str, PlannedFiles]:
    """Source of files -> what it reads.

    Args:
        asked: of the command line.
        spec: of the job.

    Raises:
        WrongUsage: USE-001, a source that does not read files, or none is named where there are several or none.
    """
    sources = list(spec.job.spec.file_sources)
    found: dict[str, PlannedFiles] = {}
    for one in asked:
        name = one.source or (sources[0] if len(sources) == 1 else "")
        if name not in sources:
            need = f"a source of files: {', '.join(sources) or f'{spec.path} has none'}"
            fix = f"--files {sources[0]}={one.files.files},SIZE" if sources else "leave out --files"
            raise WrongUsage(path="--files", given=one.source or "no SOURCE", need=need, fix=fix)
        found[name] = one.files
    return found


def _asked(text: str) -> AskedFiles:
    source, has_name, rest = text.rpartition("=")
    count, _, size = rest.partition(",")
    if not count.isascii() or not count.isdecimal() or len(count) > 9 or (has_name and not source):
        raise argparse.ArgumentTypeError(f"{text!r} is not {_FORM}")
    try:
        return AskedFiles(source, PlannedFiles.model_validate({"files": int(count), "size": size}))
    except (ValidationError, NotAQuantity) as error:
        why = error.errors()[0]["msg"].removeprefix("Value error, ") if isinstance(error, ValidationError) else error.need
        raise argparse.ArgumentTypeError(f"{text!r} is not {_FORM}: {why}") from error
