"""Taints of nodes and tolerations of pods.

Source: k8s.io/api v0.35 (``Toleration.ToleratesTaint``, with the operators Gt and Lt, which Karpenter enables) and karpenter v1.14.1
(``pkg/scheduling/taints.go``, ``preferences.go``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

PREFER_NO_SCHEDULE = "PreferNoSchedule"


class Taint(NamedTuple):
    """A taint of a node.

    Args:
        key: label-like key.
        value: may be empty.
        effect: NoSchedule, PreferNoSchedule or NoExecute.
    """

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class Toleration(NamedTuple):
    """A toleration of a pod.

    Args:
        key: key of the taint; empty with Exists: all.
        operator: Equal or Exists.
        value: value of the taint, for Equal.
        effect: effect of the taint; empty: all.
    """

    key: str
    operator: Literal["Equal", "Exists"]
    value: str
    effect: str

    def tolerates(self, taint: Taint) -> bool:
        """Whether it tolerates a taint."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        return self.operator == "Exists" or self.value == taint.value


# The toleration that Karpenter adds to an unschedulable pod, if any NodePool has such a taint.
TOLERATE_PREFER_NO_SCHEDULE = Toleration(key="", operator="Exists", value="", effect=PREFER_NO_SCHEDULE)


def not_tolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Taint | None:
    """The first untolerated taint; Karpenter treats PreferNoSchedule as NoSchedule until it relaxes it."""
    given = tuple(tolerations)
    return next((taint for taint in taints if not any(toleration.tolerates(taint) for toleration in given)), None)
