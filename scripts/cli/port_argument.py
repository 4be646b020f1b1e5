"""A port as an argument of a verb."""

from __future__ import annotations

import argparse


def port(text: str) -> int:
    """A port of an argument.

    Args:
        text: 0 to 65535; 0 selects a free one.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if not text.isdigit() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: use a number from 0 to 65535; 0 selects a free port")
    return int(text)
