"""Values of rows as tests compare them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any


def plain(value: Any) -> Any:
    """Times with their zone: the session's is UTC, and PySpark returns them in the zone of the machine."""
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.astimezone(UTC)
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list) else value
