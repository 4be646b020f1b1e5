"""What is linted: pools, pods, jobs and versions, each with where it stands in the user's document.

A subject is one world: the pods in it go to the pools in it. Whoever makes one (`penstock.scripts.cli.lint`) knows the documents; the
rules do not.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from penstock.sizing.catalog.allocatable import NodeSettings
from penstock.sizing.catalog.catalog import Catalog
from penstock.sizing.errors import Place
from penstock.sizing.placement.market import Market, market
from penstock.sizing.placement.node_pool_manifests import NodePool
from penstock.sizing.placement.pod_manifests import NodeSelectorTerm
from penstock.sizing.placement.selection import ManifestToleration
from penstock.sizing.planned import Plan

Role = Literal["driver", "executor", "other"]


class _Linted(BaseModel):
    model_config = ConfigDict(frozen=True)


class Where(_Linted):
    """A field of a document.

    Args:
        path: dotted, as the document calls it.
        at: file and line.
    """

    path: str = ""
    at: Place | None = None


class _Placed(_Linted):
    """Something of a document whose fields have places.

    Args:
        where: of the whole.
        fields: of its parts, by the names that the rules use.
    """

    where: Where = Where()
    fields: dict[str, Where] = {}

    def place(self, *names: str) -> Where:
        """The place of the first of these fields that stands in the document, or of the whole."""
        return next((self.fields[name] for name in names if name in self.fields), self.where)


class LintedPool(_Placed):
    """A NodePool; its fields are ``requirements``, ``requirements[0]``, ``taints``, ``limits``, ``disruption``, ``budgets`` ..."""

    pool: NodePool

    @property
    def name(self) -> str:
        """Its name."""
        return self.pool.name


class LintedPods(_Placed):
    """Pods that are all alike.

    Args:
        name: of what makes them, for people.
        role: what they do for a Spark job.
        node_selector: labels that their node must have.
        terms: of their required node affinity; one must hold.
        tolerations: of taints.
        labels: of the pods.
        annotations: of the pods.
    """

    name: str
    role: Role = "other"
    node_selector: dict[str, str] = {}
    terms: tuple[NodeSelectorTerm, ...] = ()
    tolerations: tuple[ManifestToleration, ...] = ()
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class LintedConf(_Placed):
    """Spark's settings of one application; its fields are the settings.

    Args:
        name: of the application.
        conf: setting -> value, as the user wrote them.
        effective: with all that the plan adds; None: no plan is made of them.
        executor: its executors; None: unknown.
    """

    name: str
    conf: dict[str, str]
    effective: dict[str, str] | None = None
    executor: LintedPods | None = None

    def get(self, key: str) -> str | None:
        """What Spark is started with; None: the default."""
        return (self.conf if self.effective is None else self.effective).get(key)

    def is_on(self, key: str) -> bool:
        """Whether a setting that is off by default is on."""
        return (self.get(key) or "").strip().lower() == "true"


class LintedSource(_Placed):
    """One source of a job.

    Args:
        name: in the spec.
        topic: that it reads.
        partitions: of the topic, in the plan.
        starting_offsets: as in the spec.
        max_offsets_per_trigger: None: a batch takes all that there is.
        has_time: whether it has an event time.
        has_idleness: whether an idle partition is left out.
    """

    name: str
    topic: str
    partitions: Annotated[int, Field(ge=1)]
    starting_offsets: str = "committed-or-latest"
    max_offsets_per_trigger: int | None = None
    has_time: bool = False
    has_idleness: bool = False


class LintedJob(_Placed):
    """A job spec with its plan.

    Args:
        name: of the job.
        plan: what sizing makes of it.
        upgrade_mode: as in the spec.
        bounded: whether it ends by itself.
        has_load: whether the spec gives a load, from which the plan follows.
        sources: what it reads.
        stateful_operators: joins and the like.
        state_backend: where their state is kept.
    """

    name: str
    plan: Plan
    upgrade_mode: str = "last-state"
    bounded: bool = False
    has_load: bool = False
    sources: tuple[LintedSource, ...] = ()
    stateful_operators: Annotated[int, Field(ge=0)] = 0
    state_backend: Literal["memory", "rocksdb"] = "rocksdb"


class LintedVersions(_Placed):
    """The versions of a cluster; its fields are ``eks`` and ``karpenter``.

    Args:
        eks: Kubernetes' version, as ``1.35``.
        karpenter: as ``1.14.1``.
        extended_support: whether the cluster may stay on a version for a price.
    """

    eks: str
    karpenter: str
    extended_support: bool = False


class LintedManifest(_Placed):
    """A Kubernetes object as a user wrote it, before any reading.

    Args:
        kind: of the object.
        api_version: of the object.
        name: of the object.
        unknown: fields that the API server drops in silence.
        refused: field -> what Karpenter would say to its value.
        properties: what the rules ask of an EC2NodeClass, as text.
    """

    kind: str
    api_version: str
    name: str
    unknown: tuple[str, ...] = ()
    refused: dict[str, str] = {}
    properties: dict[str, str] = {}


class LintedBudget(_Linted):
    """A PodDisruptionBudget's selector."""

    match_labels: dict[str, str]


class Subject(_Linted):
    """All that is linted together.

    Args:
        today: ISO text, ``2026-11-21``.
        catalog: instance types.
        zones: that nodes may be in.
        node_settings: what bears on the types that can be used.
        pools: Karpenter's NodePools; none: unknown, and nothing is said of where pods go.
        pods: that go there.
        confs: of Spark applications, the jobs' among them.
        jobs: job specs.
        versions: None: unknown.
        manifests: the objects as they were written.
        budgets: PodDisruptionBudgets.
        spot_ratio: a spot price over the on-demand price. A rule asks what can be bought, not for how much; it is there so that the market
            of a plan is not made twice.
        all_pods: whether these are all the pods that the pools are for.
    """

    today: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    catalog: Catalog
    zones: tuple[str, ...]
    node_settings: NodeSettings = NodeSettings()
    pools: tuple[LintedPool, ...] = ()
    pods: tuple[LintedPods, ...] = ()
    confs: tuple[LintedConf, ...] = ()
    jobs: tuple[LintedJob, ...] = ()
    versions: LintedVersions | None = None
    manifests: tuple[LintedManifest, ...] = ()
    budgets: tuple[LintedBudget, ...] = ()
    spot_ratio: Annotated[float, Field(gt=0)] = 1.0
    all_pods: bool = True

    @cached_property
    def market(self) -> Market:
        """The instance types; every spot price is taken as known."""
        return market(self.catalog, self.node_settings, self.zones, self.spot_ratio)
