"""Kubernetes quantities, exact: ``500m``, ``1.5Gi``, ``1e3``, ``4``.

Source: apimachinery's ``resource.ParseQuantity`` (k8s.io/apimachinery v0.35): values finer than a billionth are rounded up.
"""

from __future__ import annotations

import re
from fractions import Fraction

from penstock.sizing.units import NotAQuantity

# Amounts are integers in billionths of the unit (cores, bytes, items): the finest precision of Kubernetes.
NANO = 10**9
# Source: Kubernetes stores a quantity in 64 bits.
MAX_AMOUNT = (2**63 - 1) * NANO

_QUANTITY = re.compile(r"\+?([0-9]+\.?[0-9]*|\.[0-9]+)(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,3}))?", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
# More digits than any quantity has; Python refuses to convert beyond 4300.
_MAX_LENGTH = 60

_NEED = "a quantity of at least 0 with n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei or an exponent, without spaces"
_FIX = 'for example "500m", "2", "1.5Gi"'


def nano(value: object) -> int:
    """Parses a quantity into billionths of its unit.

    Args:
        value: text, or a number from JSON or YAML.

    Returns:
        0 or more.

    Raises:
        NotAQuantity: anything that Kubernetes rejects, a negative amount, or more than 64 bits.
    """
    text = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    match = _QUANTITY.fullmatch(text) if isinstance(text, str) and len(text) <= _MAX_LENGTH else None
    if match is None:
        raise NotAQuantity(_NEED, _FIX)
    number, suffix, exponent = match.groups()
    decimal = Fraction(10) ** (_DECIMAL[suffix] if suffix in _DECIMAL else int(exponent or 0))
    scale = Fraction(1024 ** _BINARY[suffix]) if suffix in _BINARY else decimal
    amount = Fraction(number) * scale * NANO
    if amount > MAX_AMOUNT:
        raise NotAQuantity("at most 2^63 - 1", "check the suffix")
    return -(-amount.numerator // amount.denominator)
