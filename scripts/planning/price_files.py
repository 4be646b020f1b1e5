"""Files of prices that a user names: a catalog snapshot, or a region's prices."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from penstock.jobs.errors import UnreadableDocument
from penstock.sizing.catalog import catalog
from penstock.sizing.catalog.catalog import Catalog
from penstock.sizing.cost import prices
from penstock.sizing.cost.prices import Prices
from penstock.sizing.errors import DocumentError, Place

_Read = TypeVar("_Read")


def catalog_file(path: Path) -> Catalog:
    """A snapshot that ``penstock catalog refresh`` wrote.

    Raises:
        UnreadableDocument: SPEC-001.
        BadCatalog: SIZ-031, with the file.
    """
    return _read(path, catalog.read)


def prices_file(path: Path) -> Prices:
    """A region's prices, in the form of the shipped ones.

    Raises:
        UnreadableDocument: SPEC-001.
        BadPrices: SIZ-051, with the file.
    """
    return _read(path, prices.read)


def _read(path: Path, read: Callable[[str], _Read]) -> _Read:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UnreadableDocument(at=Place(file=str(path)), given=reason, need="a JSON file", fix="specify a readable file") from None
    try:
        return read(text)
    except DocumentError as error:
        error.at = Place(file=str(path))
        raise
