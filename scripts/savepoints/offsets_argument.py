"""``--offsets-at-time`` and ``--offsets`` of ``penstock savepoint start-from``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from penstock.jobs.spec.initial_offsets import SAVEPOINT_TIME, GivenOffsets, InitialOffsets, given_offsets, parsed
from penstock.jobs.spec.times import TIME_NEEDED

_OF_THE_SAVEPOINT = "savepoint"


def add_offsets_arguments(parser: argparse.ArgumentParser) -> None:
    """Both put where the job reads on into `offsets`."""
    where = parser.add_mutually_exclusive_group()
    by_time = (
        f"the topics are on other brokers: read on at the first records from then on: {_OF_THE_SAVEPOINT}, its own time; or {TIME_NEEDED}"
    )
    where.add_argument("--offsets-at-time", dest="offsets", type=_at_time, metavar="TIME", help=by_time)
    given = 'likewise, at the offsets in a JSON file: {"TOPIC": {"PARTITION": OFFSET}}'
    where.add_argument("--offsets", dest="offsets", type=_in_file, metavar="FILE", help=given)


def _at_time(text: str) -> InitialOffsets:
    try:
        return parsed(SAVEPOINT_TIME if text == _OF_THE_SAVEPOINT else text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{_OF_THE_SAVEPOINT}, {TIME_NEEDED}, not {text}") from None


def _in_file(name: str) -> GivenOffsets:
    try:
        return given_offsets(json.loads(Path(name).read_text(encoding="utf-8")))
    except OSError as error:
        raise argparse.ArgumentTypeError(f"a file that can be read; {name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise argparse.ArgumentTypeError(f"UTF-8 text in {name}") from None
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"JSON in {name}; line {error.lineno}: {error.msg}") from None
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"in {name}: {error}") from None
