"""The regions of AWS, as the installed botocore knows them."""

from __future__ import annotations

import difflib
import importlib.util
import json
from functools import cache
from pathlib import Path


def known_regions() -> tuple[str, ...]:
    """Every region of every partition, sorted; empty if botocore is not installed.

    Source: botocore's data/partitions.json. It is read as a file because importing botocore takes a quarter of a second.
    """
    return _known()


def known_region(region: str) -> str:
    """Validates an AWS region.

    Args:
        region: such as ``eu-central-1``.

    Returns:
        The same region.

    Raises:
        ValueError: unknown region, with the closest known ones; becomes SPEC-006 with its line.
    """
    known = known_regions()
    if not known or region in known:
        return region
    nearest = difflib.get_close_matches(region, known, n=3)
    meant = f"; did you mean {' or '.join(nearest)}?" if nearest else "."
    raise ValueError(f"an AWS region known to the installed botocore{meant} Newer regions require a newer botocore")


@cache
def _known() -> tuple[str, ...]:
    package = importlib.util.find_spec("botocore")
    if package is None or not package.submodule_search_locations:
        return ()
    file = Path(package.submodule_search_locations[0], "data", "partitions.json")
    partitions = json.loads(file.read_text(encoding="utf-8"))["partitions"]
    # In addition to the regions, the file has entries for services without a region, such as aws-global.
    return tuple(sorted(region for partition in partitions for region in partition["regions"] if not region.endswith("-global")))
