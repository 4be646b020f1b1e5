"""The images that are not Penstock's or a team's own."""

from __future__ import annotations

from penstock.infra.environment import Environment
from penstock.infra.karpenter_charts import IMAGE
from penstock.infra.manifests.fluent_bit import IMAGE as FLUENT_BIT
from penstock.infra.manifests.prometheus import IMAGE as PROMETHEUS


def images(environment: Environment) -> tuple[str, ...]:
    """Those that an environment's pods run, with registry and tag; none without a cluster.

    Args:
        environment: the environment.
    """
    spec = environment.spec
    if spec.eks is None:
        return ()
    prometheus = () if spec.observability.prometheus == "none" else (PROMETHEUS,)
    return (f"{IMAGE}:{spec.eks.karpenter_version}", FLUENT_BIT, *prometheus)
