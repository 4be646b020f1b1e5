"""The configuration to lint: pools, pods, jobs and versions, each with its place in the user's document.

A subject is self-contained: its pods are scheduled onto its pools. Only the code that builds one (`penstock.scripts.cli.lint`) knows the
documents; the rules do not.
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
        path: dotted path in the document.
        at: file and line.
    """

    path: str = ""
    at: Place | None = None


class _Placed(_Linted):
    """An object of a document, with the places of its fields.

    Args:
        where: place of the object.
        fields: places of its fields, by the names that the rules use.
    """

    where: Where = Where()
    fields: dict[str, Where] = {}

    def place(self, *names: str) -> Where:
        """The place of the first of these fields that the document contains, or of the whole object."""
        return next((self.fields[name] for name in names if name in self.fields), self.where)


class LintedPool(_Placed):
    """A NodePool; its fields are ``requirements``, ``requirements[0]``, ``taints``, ``limits``, ``disruption``, ``budgets`` ..."""

    pool: NodePool

    @property
    def name(self) -> str:
        """Its name."""
        return self.pool.name


class LintedPods(_Placed):
    """A group of identical pods.

    Args:
        name: name of their owner, for display.
        role: their role in a Spark job.
        node_selector: labels that their node must have.
        terms: terms of their required node affinity, one of which must match.
        tolerations: tolerated taints.
        labels: labels of the pods.
        annotations: annotations of the pods.
    """

    name: str
    role: Role = "other"
    node_selector: dict[str, str] = {}
    terms: tuple[NodeSelectorTerm, ...] = ()
    tolerations: tuple[ManifestToleration, ...] = ()
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class LintedConf(_Placed):
    """Spark settings of one application; its fields are the settings.

    Args:
        name: name of the application.
        conf: setting -> value, as the user wrote them.
        effective: with all settings that the plan adds; None: no plan.
        executor: its executors; None: unknown.
    """

    name: str
    conf: dict[str, str]
    effective: dict[str, str] | None = None
    executor: LintedPods | None = None

    def get(self, key: str) -> str | None:
        """The effective value of a setting; None: the default."""
        return (self.conf if self.effective is None else self.effective).get(key)

    def is_on(self, key: str) -> bool:
        """Whether a setting that is off by default is on."""
        return (self.get(key) or "").strip().lower() == "true"


class LintedSource(_Placed):
    """One source of a job.

    Args:
        name: name in the spec.
        topic: topic that it reads.
        partitions: partitions of the topic, in the plan.
        starting_offsets: as in the spec.
        has_time: whether it has an event time.
        has_idleness: whether idle partitions are excluded from the watermark.
        out_of_order_ms: how far behind the newest row of its partition a row may be, its allowed lateness included, in ms; None: no event
            time from a field.
    """

    name: str
    topic: str
    partitions: Annotated[int, Field(ge=1)]
    starting_offsets: str = "committed-or-latest"
    has_time: bool = False
    has_idleness: bool = False
    out_of_order_ms: Annotated[int, Field(ge=0)] | None = None


class LintedJob(_Placed):
    """A job spec with its plan.

    Args:
        name: name of the job.
        plan: its plan.
        upgrade_mode: as in the spec.
        bounded: whether it is a bounded run.
        has_load: whether the spec has a load, from which the plan is derived.
        sources: its sources.
        stateful_operators: joins and other stateful operators.
        state_backend: backend of their state.
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
        eks: Kubernetes version, such as ``1.35``.
        karpenter: for example ``1.14.1``.
        extended_support: whether the cluster may stay on a version in paid extended support.
    """

    eks: str
    karpenter: str
    extended_support: bool = False


class LintedManifest(_Placed):
    """A Kubernetes object as written, before parsing.

    Args:
        kind: kind of the object.
        api_version: API version of the object.
        name: name of the object.
        unknown: fields that the API server drops silently.
        refused: field -> the reason for which Karpenter rejects its value.
        properties: properties of an EC2NodeClass that the rules need, as text.
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
    """All configuration that is linted together.

    Args:
        today: ISO date, ``2026-11-21``.
        catalog: instance types.
        zones: zones that nodes may use.
        node_settings: settings that affect the usable types.
        pools: Karpenter's NodePools; empty: unknown, and scheduling is not checked.
        pods: pods to schedule.
        confs: settings of Spark applications, including the jobs.
        jobs: job specs.
        versions: None: unknown.
        manifests: the objects as written.
        budgets: PodDisruptionBudgets.
        spot_ratio: spot price over on-demand price. Rules check availability, not prices; the field allows sharing the market with a
            plan instead of computing it twice.
        all_pods: whether these are all pods that the pools serve.
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
        """The instance types; every spot price is assumed to be known."""
        return market(self.catalog, self.node_settings, self.zones, self.spot_ratio)
