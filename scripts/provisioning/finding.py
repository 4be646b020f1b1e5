"""Result of a check by `penstock doctor`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

OK, MISSING, OPTIONAL = "ok", "missing", "not here"


@dataclass(frozen=True)
class Finding:
    """Result of one check.

    Args:
        name: the subject of the check.
        state: ok; missing: required and missing or invalid; not here: missing, needed only for `purpose`.
        said: its version, its location, or the problem.
        purpose: what it is used for.
        fix: how to get it, unless ok.
    """

    name: str
    state: str
    said: str
    purpose: str
    fix: str = ""

    def document(self) -> dict[str, Any]:
        """Return the result for JSON output."""
        return asdict(self)


def missing(name: str, *, said: str, purpose: str, fix: str, needed: bool) -> Finding:
    """Return the result of a failed check.

    Args:
        name: the subject of the check.
        said: the problem.
        purpose: what it is used for.
        fix: how to get it.
        needed: whether a deploy or a run fails without it.
    """
    return Finding(name, MISSING if needed else OPTIONAL, said, purpose, fix)
