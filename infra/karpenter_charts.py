"""The charts and the image of Karpenter, where its project publishes them and where an environment pulls them from."""

from __future__ import annotations

from typing import NamedTuple

from penstock.infra.environment import Environment
from penstock.infra.parts.mirrors import mirrored

REPOSITORY = "public.ecr.aws/karpenter"
CRDS, CONTROLLER = "karpenter-crd", "karpenter"
# Source: the chart of Karpenter 1.14.1, controller.image.repository.
IMAGE = f"{REPOSITORY}/controller"


class Chart(NamedTuple):
    """A chart that Helm pulls on the machine that deploys.

    Args:
        name: its own, the last part of its repository's name.
        version: its tag.
        source: its repository at its publisher, with registry, without its name.
        repository: the same at the environment's mirror, if it has one.
    """

    name: str
    version: str
    source: str
    repository: str

    @property
    def published(self) -> str:
        """As its publisher names it, with its tag."""
        return f"{self.source}/{self.name}:{self.version}"

    @property
    def pulled(self) -> str:
        """As it is pulled, with its tag."""
        return f"{self.repository}/{self.name}:{self.version}"


def charts(environment: Environment) -> tuple[Chart, ...]:
    """The charts of others of an environment; none without a cluster, or in one that has a Karpenter."""
    spec = environment.spec
    if spec.eks is None or not environment.own_karpenter:
        return ()
    version, repository = spec.eks.karpenter_version, mirrored(REPOSITORY, spec.mirrors)
    return tuple(Chart(name, version, REPOSITORY, repository) for name in (CRDS, CONTROLLER))
