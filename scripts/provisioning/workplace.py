"""Working folder of an environment's stacks, used by one command at a time."""

from __future__ import annotations

import argparse
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from penstock.scripts.provisioning.errors import StateLocked

# Next to the states: Terraform's providers are kept here between deploys.
DEFAULT_FOLDER = Path(".penstock/stacks")
# Names another folder than the default: an emulated environment has one that ends with it, because its state does.
FOLDER_VARIABLE = "PENSTOCK_STACKS_FOLDER"
_LOCK = "in-use"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--out`` and ``--limit-s``."""
    parser.add_argument("--out", type=Path, metavar="DIR", help=f"working folder for the stacks (default: {DEFAULT_FOLDER}/ENV)")
    add_limit_argument(parser)


def add_limit_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--limit-s``."""
    parser.add_argument(
        "--limit-s", type=seconds, metavar="SECONDS", help="timeout of each Terraform command (default: depends on the command)"
    )


def folder_of(environment_name: str, named: Path | None) -> Path:
    """Return the folder of an environment's stacks.

    Args:
        environment_name: name of the environment.
        named: the user's choice; None: the default, below PENSTOCK_STACKS_FOLDER if that is set.
    """
    return (named or Path(os.environ.get(FOLDER_VARIABLE) or DEFAULT_FOLDER) / environment_name).absolute()


@contextmanager
def held(folder: Path, verb: str) -> Iterator[Path]:
    """Lock the folder for this process: Terraform's own lock would fail only after the other process's files were overwritten.

    Args:
        folder: the folder; created if missing.
        verb: what this process does, for the message of a process that finds the lock.

    Raises:
        StateLocked: DEP-006, another process on this machine uses the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK).open("a+", encoding="utf-8") as file:
        try:
            # The kernel releases it when this process ends, however it ends.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "another process"
            fix = "wait until it has finished and retry"
            raise StateLocked(path=str(folder), given=holder, need="only one deploy or destroy at a time", fix=fix) from None
        file.truncate(0)
        file.write(f"process {os.getpid()} of this machine is running 'penstock {verb}' since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC\n")
        file.flush()
        yield folder


def seconds(text: str) -> float:
    """A timeout of a command line, in seconds."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 1 <= number <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 1 to 86400")
    return number
