"""An environment as lint sees it: its pools, where its drivers and executors are scheduled, and its versions, with their lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from penstock.infra.plans import plans
from penstock.infra.pool_limits import limited, pool_limits
from penstock.jobs.document import Document, Path_, dotted, parse_text
from penstock.scripts.planning.planned_jobs import where as where_of
from penstock.sizing.cluster import Cluster, PodPlace
from penstock.sizing.errors import PenstockError
from penstock.sizing.lint.subject import LintedPods, LintedPool, LintedVersions, Role, Where
from penstock.sizing.placement.node_pool_manifests import NodePool
from penstock.sizing.placement.selection import ManifestToleration

_POOLS: Path_ = ("spec", "nodes", "pools")


class LintedEnvironment:
    """An environment with the document that it was read from.

    Args:
        name_or_path: of a shipped one, or of a YAML file.
        catalog: a snapshot of instance types in place of the environment's own.

    Raises:
        PenstockError: as `penstock.scripts.planning.planned_jobs.where`.
    """

    def __init__(self, name_or_path: str, catalog: Path | None = None) -> None:
        self.there = where_of(name_or_path, catalog)
        self.cluster: Cluster | None = self.there.cluster
        environment = self.there.environment
        self._document = environment.document or parse_text(environment.text(), environment.name)

    @property
    def pools(self) -> tuple[LintedPool, ...]:
        """Its NodePools; none without a cluster."""
        if self.cluster is None:
            return ()
        return tuple(self._pool(index, pool) for index, pool in enumerate(self._deployed(self.cluster).node_pools))

    @property
    def driver(self) -> LintedPods:
        """Where drivers go."""
        return self._pods("driver", self.cluster.driver if self.cluster else PodPlace())

    @property
    def executor(self) -> LintedPods:
        """Where executors go."""
        return self._pods("executor", self.cluster.executor if self.cluster else PodPlace())

    @property
    def versions(self) -> LintedVersions | None:
        """Its versions; None without a cluster."""
        if self.cluster is None:
            return None
        fields = {"eks": self._where("spec", "eks", "version"), "karpenter": self._where("spec", "eks", "karpenterVersion")}
        return LintedVersions(
            eks=self.cluster.eks_version,
            karpenter=self.cluster.karpenter_version,
            extended_support=self.cluster.extended_support,
            where=self._where("spec", "eks"),
            fields=fields,
        )

    def _deployed(self, cluster: Cluster) -> Cluster:
        """The cluster with the limits that the stacks give to pools without any, where the environment's jobs can be planned."""
        environment = self.there.environment
        if environment.spec.nodes is None or not environment.spec.jobs:
            return cluster
        try:
            running = plans(environment).workloads
            return limited(cluster, pool_limits(running, cluster, environment.spec.nodes.limit_headroom))
        except PenstockError:
            # A job that can't be planned is reported by its planning; without its plan no limit is known.
            return cluster

    def _pool(self, index: int, pool: NodePool) -> LintedPool:
        root = (*_POOLS, index)
        names = ("requirements", "taints", "limits", "disruption", "labels", "expireAfter")
        fields = {name: self._where(*root, name) for name in names if (*root, name) in self._document.places}
        if "budgets" in fields:
            fields["budgets"] = self._where(*root, "disruption", "budgets")
        fields |= {f"requirements[{at}]": self._where(*root, "requirements", at) for at in range(len(pool.spec.template.spec.requirements))}
        return LintedPool(pool=pool, where=self._where(*root), fields=fields)

    def _pods(self, role: Role, place: PodPlace) -> LintedPods:
        root: Path_ = ("spec", "nodes", "pods", role)
        fields = {name: self._where(*root, name) for name in ("nodeSelector", "tolerations") if (*root, name) in self._document.places}
        fields |= {f"nodeSelector.{label}": self._where(*root, "nodeSelector", label) for label in place.node_selector}
        return LintedPods(
            name=f"{role}s of {self.there.environment.name}",
            role=role,
            node_selector=place.node_selector,
            tolerations=tolerations(place.tolerations),
            where=self._where(*root),
            fields=fields,
        )

    def _where(self, *path: str | int) -> Where:
        return where(self._document, path)


def where(document: Document, path: Path_) -> Where:
    """A field of a document, with its line."""
    return Where(path=dotted(path), at=document.place(path))


def tolerations(given: Sequence[dict[str, str]]) -> tuple[ManifestToleration, ...]:
    """Tolerations of Kubernetes manifests as models."""
    return tuple(ManifestToleration.model_validate(one) for one in given)
