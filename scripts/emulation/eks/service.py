"""EKS, instead of moto's, which drops a cluster's access_config, invents remote access, and has no add-ons, access entries or pod
identity.
"""

from __future__ import annotations

from moto.eks.models import eks_backends

from penstock.scripts.emulation.checked_service import CheckedService
from penstock.scripts.emulation.eks import access, addons, clusters, node_groups, pod_identity, tags
from penstock.scripts.emulation.eks.state import Eks

SERVICE = CheckedService(
    "eks",
    hosts=r"https?://eks\.(.+)\.amazonaws.com",
    operations={
        **clusters.OPERATIONS,
        **node_groups.OPERATIONS,
        **addons.OPERATIONS,
        **access.OPERATIONS,
        **pod_identity.OPERATIONS,
        **tags.OPERATIONS,
    },
    state=Eks,
    malformed="InvalidParameterException",
)


def add() -> None:
    """Serve EKS in this process."""
    SERVICE.take_over(eks_backends)
