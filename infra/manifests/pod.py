"""What manifests of pods have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from infra.cluster_parts import Toleration


def tolerations(given: Iterable[Toleration]) -> list[dict[str, Any]]:
    """Tolerations as the Kubernetes API takes them; what is not given is left out."""
    return [toleration.model_dump(by_alias=True, exclude_none=True) for toleration in given]
