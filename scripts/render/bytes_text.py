"""Bytes in the unit in which people read them."""

from __future__ import annotations

_KIB = 1024


def bytes_text(count: int) -> str:
    """A number of bytes in the largest binary unit of which there is at least one: ``812 bytes``, ``1.5 KiB``, ``2,048.0 GiB``.

    Args:
        count: the bytes, at least 0.
    """
    if count < _KIB:
        return f"{count} byte{'' if count == 1 else 's'}"
    amount, units = count / _KIB, ["KiB", "MiB", "GiB"]
    # What would be printed as 1,024.0 is 1.0 of the next unit.
    while len(units) > 1 and round(amount, 1) >= _KIB:
        amount /= _KIB
        del units[0]
    return f"{amount:,.1f} {units[0]}"
