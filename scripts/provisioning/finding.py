"""One thing that `penstock doctor` has looked at."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

OK, MISSING, OPTIONAL = "ok", "missing", "not here"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Args:
        name: what it is.
        state: ok; missing: it is needed and is not as it has to be; not here: nothing needs it but what `purpose` says.
        said: its version, its place, or what is wrong.
        purpose: what it is for.
        fix: how to get it, where it is not ok.
    """

    name: str
    state: str
    said: str
    purpose: str
    fix: str = ""

    def document(self) -> dict[str, Any]:
        """The same for programs."""
        return asdict(self)


def missing(name: str, *, said: str, purpose: str, fix: str, needed: bool) -> Finding:
    """A finding of what is not as it has to be.

    Args:
        name: what it is.
        said: what is wrong.
        purpose: what it is for.
        fix: how to get it.
        needed: whether a deploy or a run fails without it.
    """
    return Finding(name, MISSING if needed else OPTIONAL, said, purpose, fix)
