"""Flink's value formats: memory sizes, fractions, durations, integers.

Source: Flink 1.20.3 and 2.1.0, ``MemorySize.parseBytes``, ``ConfigurationUtils`` and ``TimeUtils.parseDuration``; the tests contain
results of their jars. The operator's fallback for memory: flink-kubernetes-operator, ``parseResourceMemoryString``.
"""

from __future__ import annotations

import re
import struct
from fractions import Fraction

from penstock.sizing.units import MAX_DURATION_MS, MAX_MEMORY_BYTES, NotAQuantity

# Source: Java's Long.MAX_VALUE, which is MemorySize.MAX_VALUE.
MAX_LONG = 2**63 - 1

_MEMORY_UNITS = {
    "": 0, "b": 0, "bytes": 0, "k": 1, "kb": 1, "kibibytes": 1, "m": 2, "mb": 2, "mebibytes": 2,
    "g": 3, "gb": 3, "gibibytes": 3, "t": 4, "tb": 4, "tebibytes": 4,
}  # fmt: skip
# Kubernetes units, for values that MemorySize cannot parse; a unit without i is decimal.
_KUBERNETES_UNITS = {"": 1, **{unit: 1000**power for power, unit in enumerate("KMGTPE", start=1)}}
_KUBERNETES_UNITS |= {f"{unit}i": 1024**power for power, unit in enumerate("KMGTPE", start=1)}
_NANOSECONDS = {"ns": 1, "micros": 1_000, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3_600 * 10**9, "d": 86_400 * 10**9}
_DURATION_WORDS = {
    "ns": "ns", "nano": "ns", "nanos": "ns", "nanosecond": "ns", "nanoseconds": "ns",
    "µs": "micros", "micro": "micros", "micros": "micros", "microsecond": "micros", "microseconds": "micros",
    "": "ms", "ms": "ms", "milli": "ms", "millis": "ms", "millisecond": "ms", "milliseconds": "ms",
    "s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
    "m": "min", "min": "min", "minute": "min", "minutes": "min",
    "h": "h", "hour": "h", "hours": "h", "d": "d", "day": "d", "days": "d",
}  # fmt: skip
_ISO_DURATION = r"P(?=[0-9T])(?:([0-9]{1,9})D)?(?:T(?=[0-9])(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9})(?:\.([0-9]{1,9}))?S)?)?"
_NUMBER = r"\s*\+?([0-9]{1,20}\.?[0-9]{0,20}|\.[0-9]{1,20})([eE][+-]?[0-9]{1,2})?\s*"
# No meaningful value is longer; Python refuses to convert numbers of more than 4300 digits.
_MAX_LENGTH = 60


def memory_bytes(text: str) -> int:
    """Parses a memory size: an integer and a binary, case-insensitive unit; bytes if the unit is omitted.

    Returns:
        Bytes, 0 to `MAX_LONG`.

    Raises:
        NotAQuantity: fractions, signs, other units (including ``Gi``), and more than 63 bits.
    """
    match = re.fullmatch(r"([0-9]+)\s*([a-z]*)", text.strip().lower(), re.ASCII) if len(text) <= _MAX_LENGTH else None
    if match is None or match.group(2) not in _MEMORY_UNITS:
        need = "an integer with b, k, m, g or t (binary units); bytes without a unit"
        raise NotAQuantity(need, 'for example "2048m"')
    size: int = int(match.group(1)) * 1024 ** _MEMORY_UNITS[match.group(2)]
    if size > MAX_LONG:
        raise NotAQuantity("a size that fits in 63 bits", "check the unit")
    return size


def resource_memory_bytes(text: str) -> int:
    """Parses the memory of a FlinkDeployment's ``resource``: as a Flink memory size, and only if that fails as a Kubernetes quantity.

    So ``2g``, ``2G`` and ``2Gi`` are 2 GiB, but ``2.5G`` is 2,500,000,000 bytes.

    Returns:
        Bytes, above 0.

    Raises:
        NotAQuantity: neither format, not a whole number of bytes, zero, or more than 1024 TiB.
    """
    try:
        size: Fraction | int = memory_bytes(text)
    except NotAQuantity:
        size = _kubernetes_bytes(text)
    if size != int(size) or not 0 < size <= MAX_MEMORY_BYTES:
        raise NotAQuantity("a whole number of bytes, greater than 0 and at most 1024Ti", 'for example "2048m" or "2Gi"')
    return int(size)


def fraction(text: str) -> float:
    """Parses a fraction as Flink does: a 32-bit float, widened to 64 bits.

    Because of the widening 0.1 of 1280 MiB is 134217730 bytes instead of 134217728.

    Raises:
        NotAQuantity: not a number, or outside of [0, 1).
    """
    number = float(text) if re.fullmatch(_NUMBER, text, re.ASCII) else -1.0
    if 0 <= number < 2:
        (number,) = struct.unpack("f", struct.pack("f", number))
    if not 0 <= number < 1:
        raise NotAQuantity("a number of at least 0 and less than 1", "for example 0.4")
    return number


def whole_number(text: str) -> int:
    """Parses an integer above 0, such as Flink's number of slots."""
    digits = text.strip()
    if not re.fullmatch(r"[0-9]{1,9}", digits, re.ASCII) or int(digits) < 1:
        raise NotAQuantity("an integer greater than 0", "for example 4")
    return int(digits)


def cores(text: str) -> float:
    """Parses a number of CPU cores above 0, at most 1000."""
    number = float(text) if re.fullmatch(r"\s*[0-9]{1,6}(\.[0-9]{1,20})?\s*", text, re.ASCII) else 0.0
    if not 0 < number <= 1_000:
        raise NotAQuantity("a number of cores greater than 0 and at most 1000", "for example 1 or 0.5")
    return number


def boolean(text: str) -> bool:
    """Parses ``true`` or ``false``, case-insensitive."""
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise NotAQuantity("true or false", "use true or false")
    return word == "true"


def duration_ms(text: str) -> int:
    """Parses a duration: ``60s``, ``1 min``, and ``PT1M``, which only Flink 2 accepts; a number without a unit is in milliseconds.

    Returns:
        Milliseconds, 0 or more; finer values are rounded down.

    Raises:
        NotAQuantity: anything else, and more than 3650 days.
    """
    nanoseconds = _iso_nanoseconds(text) if text.strip().upper().startswith("P") else _nanoseconds(text)
    if nanoseconds is None or nanoseconds > MAX_DURATION_MS * 10**6:
        need = "a Flink duration: an integer with ms, s, min, h or d, at most 3650 d"
        raise NotAQuantity(need, 'for example "60s" or "1 min"')
    return nanoseconds // 10**6


def _nanoseconds(text: str) -> int | None:
    match = re.fullmatch(r"([0-9]{1,18})\s*([a-zµ]*)", text.strip().lower()) if len(text) <= _MAX_LENGTH else None
    unit = _DURATION_WORDS.get(match.group(2)) if match else None
    return int(match.group(1)) * _NANOSECONDS[unit] if match and unit else None


def _iso_nanoseconds(text: str) -> int | None:
    match = re.fullmatch(_ISO_DURATION, text.strip().upper(), re.ASCII)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(number or 0) for number in match.groups()[:4])
    whole = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    return whole * 10**9 + int((match.group(5) or "").ljust(9, "0"))


def _kubernetes_bytes(text: str) -> Fraction:
    """The operator's normalization of a text that MemorySize rejects: upper case, without blanks and a trailing B, with a lower-case i."""
    compact = re.sub(r"\s", "", text).upper().removesuffix("B") if len(text) <= _MAX_LENGTH else ""
    match = re.fullmatch(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)([KMGTPE]?I?)", compact, re.ASCII)
    unit = match.group(2).replace("I", "i") if match else "none"
    if match is None or unit not in _KUBERNETES_UNITS:
        raise NotAQuantity("a Flink memory size (2048m, 16g) or a Kubernetes quantity (2Gi)", 'for example "2048m" or "2Gi"')
    size: Fraction = Fraction(match.group(1)) * _KUBERNETES_UNITS[unit]
    return size
