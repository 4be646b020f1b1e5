"""Settings that a plan adds where executors may be on spot, unless the spec sets them."""

from __future__ import annotations

from penstock.sizing.catalog.labels import CAPACITY_TYPE, SPOT
from penstock.sizing.cluster import Cluster
from penstock.sizing.placement.node_pool_manifests import NodePool
from penstock.sizing.placement.pools import pool_requirements
from penstock.sizing.placement.requirements import Requirements, one_of, requirements
from penstock.sizing.placement.selection import ManifestToleration
from penstock.sizing.placement.taints import PREFER_NO_SCHEDULE, not_tolerated
from penstock.sizing.plan.job_pods import EXECUTOR, node_selector
from penstock.sizing.targets import Targets

DECOMMISSION = "spark.decommission.enabled"
# An executor whose node is about to be removed finishes its tasks and hands on its blocks instead of just stopping, for which it has the
# two minutes of a spot notice less 10 s (Amazon EC2 User Guide, "Spot Instance interruption notices").
SPOT_DEFAULTS = {
    DECOMMISSION: "true",
    "spark.storage.decommission.enabled": "true",
    "spark.kubernetes.executor.terminationGracePeriodSeconds": "110s",
}


def with_spot_defaults(targets: Targets, cluster: Cluster | None) -> Targets:
    """The targets, with the settings for executors that may be on spot; the spec's own take precedence.

    Args:
        targets: targets of the job.
        cluster: the environment; None: not known, and nothing is added.
    """
    decommissions = targets.spark_conf.get(DECOMMISSION, "true").strip().lower() == "true"
    if cluster is None or not decommissions or not _may_be_on_spot(targets, cluster):
        return targets
    return targets.model_copy(update={"spark_conf": {**SPOT_DEFAULTS, **targets.spark_conf}})


def _may_be_on_spot(targets: Targets, cluster: Cluster) -> bool:
    """Whether a NodePool takes executors and may give them spot nodes."""
    selector = node_selector(EXECUTOR, targets.spark_conf, cluster.executor)
    wanted = requirements([*((label, one_of((value,))) for label, value in selector.items()), (CAPACITY_TYPE, one_of((SPOT,)))])
    tolerations = [ManifestToleration.model_validate(toleration) for toleration in cluster.executor.tolerations]
    return any(_takes(pool, wanted, tolerations) for pool in cluster.node_pools)


def _takes(pool: NodePool, wanted: Requirements, tolerations: list[ManifestToleration]) -> bool:
    hard = [taint.taint for taint in pool.spec.template.spec.taints if taint.taint.effect != PREFER_NO_SCHEDULE]
    if not_tolerated(hard, [toleration.toleration for toleration in tolerations]) is not None:
        return False
    own = pool_requirements(pool)
    return own.conflict(wanted) is None
