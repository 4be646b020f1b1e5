"""Human-readable quantities: memory, CPU and durations.

Memory is binary with any suffix, as in Flink's ``MemorySize``. ``m`` is MiB for memory, milli for CPU and minutes for a duration.
"""

from __future__ import annotations

import re
from fractions import Fraction

MEMORY_PATTERN = r"^([0-9]+[kKmMgGtT][bB]?|[0-9]+(\.[0-9]+)?[KMGT]i)$"
CPU_PATTERN = r"^([0-9]+m|[0-9]+(\.[0-9]+)?)$"
DURATION_PATTERN = r"^[0-9]+(ms|s|m|h|d)$"

_EXPONENTS = {"k": 1, "m": 2, "g": 3, "t": 4}
_DURATIONS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
MIB = 1024 * 1024
# No machine has more; a typing error such as 16000t would exceed it.
MAX_MEMORY_BYTES = 1024 * 1024**4
MAX_CPU_MILLICORES = 1_000_000
MAX_DURATION_MS = 3_650 * 86_400_000
# Longer than any quantity above; Python refuses to convert numbers of more than 4300 digits.
_MAX_LENGTH = 40


class NotAQuantity(ValueError):
    """An invalid quantity.

    Args:
        need: what is allowed.
        fix: how to fix it.
    """

    def __init__(self, need: str, fix: str) -> None:
        super().__init__(need)
        self.need = need
        self.fix = fix


def size_bytes(text: object) -> int:
    """Parses a size into bytes: ``64k``, ``128Mi``, ``1g``.

    Raises:
        NotAQuantity: anything else; numbers without a unit are rejected, because they could be bytes or MiB.
    """
    if not isinstance(text, str) or len(text) > _MAX_LENGTH or not re.fullmatch(MEMORY_PATTERN, text, re.ASCII):
        raise NotAQuantity(
            "an integer with k, m, g or t (with or without b, any case, binary), or a number with Ki, Mi, Gi or Ti",
            f'for example "{_close_memory(text)}"',
        )
    number = re.match(r"[0-9.]+", text)
    assert number is not None
    suffix = text[number.end()].lower()
    size = Fraction(number.group()) * 1024 ** _EXPONENTS[suffix]
    if size.denominator != 1 or size <= 0:
        raise NotAQuantity("a whole number of bytes greater than 0", "use a smaller unit")
    if size > MAX_MEMORY_BYTES:
        raise NotAQuantity("at most 1024Ti", "check the suffix")
    return int(size)


def memory_mib(text: object) -> int:
    """Parses memory into MiB.

    Returns:
        A whole number of MiB, 1 or more.

    Raises:
        NotAQuantity: not a size, or not a whole number of MiB.
    """
    size = size_bytes(text)
    if size % MIB:
        below = size // MIB
        raise NotAQuantity("a whole number of MiB", f'"{below}m" or "{below + 1}m"' if below else '"1m"')
    return size // MIB


def cpu_millicores(value: object) -> int:
    """Parses CPU into millicores: ``4``, ``0.5``, ``"500m"``.

    Raises:
        NotAQuantity: anything else, and values finer than a millicore.
    """
    text = _written(value)
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not re.fullmatch(CPU_PATTERN, text, re.ASCII):
        raise NotAQuantity("a number of cores greater than 0, or millicores with m", 'for example 4, 0.5 or "500m"')
    millicores = Fraction(text[:-1]) if text.endswith("m") else Fraction(text) * 1000
    if millicores.denominator != 1 or not 0 < millicores <= MAX_CPU_MILLICORES:
        raise NotAQuantity("whole millicores, from 1m to 1000 cores", 'for example 4, 0.5 or "500m"')
    return int(millicores)


def duration_ms(text: object) -> int:
    """Parses a duration into milliseconds: ``500ms``, ``10s``, ``2m``, ``1h``, ``7d``.

    Raises:
        NotAQuantity: anything else; numbers without a unit are rejected.
    """
    match = re.fullmatch(r"([0-9]+)(ms|s|m|h|d)", _written(text), re.ASCII) if isinstance(text, str) else None
    if match is None:
        raise NotAQuantity("an integer with ms, s, m, h or d", 'for example "500ms", "10s" or "2m"')
    duration = int(match.group(1)) * _DURATIONS_MS[match.group(2)]
    if not 0 < duration <= MAX_DURATION_MS:
        raise NotAQuantity("a duration greater than 0 and at most 3650d", 'for example "10s"')
    return duration


def is_no_duration(text: str) -> bool:
    """Whether a text is a duration of zero, ``0`` or ``0s``, where a bound or an offset may be zero."""
    return re.fullmatch(r"0|0+(ms|s|m|h|d)", text, re.ASCII) is not None


def memory_text(memory_mib: int) -> str:
    """Formats memory: ``16 GiB``, ``11,703 MiB``."""
    return f"{memory_mib // 1024:,} GiB" if memory_mib % 1024 == 0 and memory_mib else f"{memory_mib:,} MiB"


def cpu_text(millicores: int) -> str:
    """Formats CPU: ``4 cores``, ``1 core``, ``0.5 cores``."""
    return "1 core" if millicores == 1000 else f"{millicores / 1000:g} cores"


def _close_memory(text: object) -> str:
    """The nearest valid value, as a suggestion in an error."""
    match = re.fullmatch(r"\s*-?([0-9]+)(\.[0-9]+)?\s*([kmgt])i?b?\s*", _written(text), re.IGNORECASE | re.ASCII)
    if match is None:
        return "16g"
    digits, decimals, suffix = match.groups()
    return f"{digits}{decimals}{suffix.upper()}i" if decimals else f"{digits}{suffix.lower()}"


def _written(value: object) -> str:
    """A text or a number as written; empty, which is not a quantity, for other types and overlong texts."""
    if not isinstance(value, str | int | float) or (isinstance(value, int) and value.bit_length() > 4 * _MAX_LENGTH):
        return ""
    text = str(value)
    return text if len(text) <= _MAX_LENGTH else ""
