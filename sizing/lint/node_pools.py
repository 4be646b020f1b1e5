"""Rules on NodePools: configuration that leaves them empty, or that removes their nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from penstock.sizing.catalog.labels import AWS, CAPACITY_TYPE, INSTANCE_TYPE, NORMALIZED, OS, RESERVED, SPOT, WELL_KNOWN
from penstock.sizing.lint.durations import NEVER, seconds
from penstock.sizing.lint.finding import Severity
from penstock.sizing.lint.fit import allows_spot, is_spot_only, pools_for, types_of
from penstock.sizing.lint.names import listed, meant
from penstock.sizing.lint.rule import Fault, rule
from penstock.sizing.lint.subject import LintedPods, LintedPool, Subject, Where
from penstock.sizing.placement.node_pool_manifests import NodePool
from penstock.sizing.placement.pools import enough_values, pool_requirements
from penstock.sizing.placement.requirements import Allowed, Requirements, one_of, requirements
from penstock.sizing.placement.selection import NodeSelectorRequirement, Requirement

# Source: EC2 User Guide, "Best practices for Amazon EC2 Spot": be flexible about instance types; with few types capacity runs out quickly.
FEW_SPOT_TYPES = 5
# Source: karpenter v1.14.1, MinInstanceTypesForSpotToSpotConsolidation.
SPOT_TO_SPOT_TYPES = 15
# Source: karpenter v1.14.1, the defaults of NodePool.spec.disruption and of expireAfter.
DEFAULT_POLICY, DEFAULT_CONSOLIDATE_AFTER, DEFAULT_EXPIRE_AFTER = "WhenEmptyOrUnderutilized", "0s", "720h"
SOON_S = 60
DAY_S = 86_400

_FAMILY, _CATEGORY, _GENERATION = (f"{AWS}instance-{name}" for name in ("family", "category", "generation"))
_AMD64, _ARM64 = "amd64", "arm64"


@rule(
    "LINT-004",
    "error",
    "conflicting NodePool requirements",
    why="no node can satisfy all of them, so Karpenter never creates one and pods that need this pool stay Pending",
    fix="remove one of them, or make them overlap",
)
def exclusive_requirements(subject: Subject) -> Iterator[Fault]:
    """Source: karpenter v1.14.1, requirements on one label are intersected, those of the template's labels among them."""
    for pool in subject.pools:
        for label, parts in _by_label(pool.pool).items():
            if len(parts) > 1 and _is_empty(values for _, values in parts):
                shown = " and ".join(text for text, _ in parts)
                yield Fault(_requirement_place(pool, label), f"{pool.name}: {shown}", f"a value of {label} allowed by all of them")


@rule(
    "LINT-005",
    "error",
    "no instance type matches a NodePool",
    why="each requirement can be satisfied, but no instance type satisfies all, so Karpenter never creates a node of this pool",
    fix="relax one of them",
)
def no_type_left(subject: Subject) -> Iterator[Fault]:
    """Source: karpenter v1.14.1: a NodePool whose instance types are all filtered out is skipped."""
    for pool in subject.pools:
        exclusive = any(_is_empty(values for _, values in parts) for parts in _by_label(pool.pool).values())
        if not exclusive and not types_of(subject, pool.pool):
            binding = _binding(subject, pool.pool)
            place = pool.place(*(f"requirements[{index}]" for index in binding), "requirements")
            shown = " and ".join(_text(pool.pool.spec.template.spec.requirements[index]) for index in binding)
            need = f"at least one of the {len(subject.catalog.types):,} instance types of {subject.catalog.region} ({subject.catalog.date})"
            yield Fault(place, f"{pool.name}: {shown}", need)


@rule(
    "LINT-006",
    "error",
    "unknown value for an instance label",
    why="a value that does not exist selects nothing (with NotIn, it excludes nothing); on its own, it leaves pods Pending",
    fix="use an existing value",
)
def unknown_values(subject: Subject) -> Iterator[Fault]:
    """Source: the catalog of instance types. A generation newer than the catalog's is a warning: it may have been released since."""
    for pool in subject.pools:
        for index, requirement in enumerate(pool.pool.spec.template.spec.requirements):
            where = pool.place(f"requirements[{index}]", "requirements")
            yield from _unknown(subject, where, pool.name, requirement.key, _compared(requirement))
    for pods in subject.pods:
        for label, value in pods.node_selector.items():
            # In the settings of a SparkApplication it may not be a label at all, which this rule cannot decide.
            yield from _unknown(subject, pods.place(f"nodeSelector.{label}", "nodeSelector"), pods.name, label, [value])
        for one in (one for term in pods.terms for one in term.match_expressions):
            yield from _unknown(subject, pods.place("affinity"), pods.name, one.key, _compared(one))


@rule(
    "LINT-007",
    "error",
    "minValues cannot be satisfied",
    why="Karpenter launches no node if the instance types have fewer distinct values than minValues requires",
    fix="lower minValues, or allow more values",
)
def min_values_not_met(subject: Subject) -> Iterator[Fault]:
    """Source: karpenter v1.14.1, minValues with the policy Strict, its default."""
    for pool in subject.pools:
        own = pool_requirements(pool.pool)
        types = types_of(subject, pool.pool)
        if enough_values(subject.market, types, own):
            continue
        for index, one in enumerate(pool.pool.spec.template.spec.requirements):
            has = len(subject.market.values(types, NORMALIZED.get(one.key, one.key)))
            if one.min_values is not None and has < one.min_values:
                where = pool.place(f"requirements[{index}]", "requirements")
                yield Fault(
                    where, f"{pool.name}: {_text(one)}, minValues {one.min_values}", f"at most {has}, the number of remaining values"
                )


@rule(
    "LINT-008",
    "warning",
    "spot NodePool with few instance types",
    why="spot capacity of a type can run out in a zone at any time; with few types, lost executors find no replacement node",
    fix="allow more families, sizes or zones, or on-demand as a fallback: karpenter.sh/capacity-type In [spot, on-demand]",
)
def few_spot_types(subject: Subject) -> Iterator[Fault]:
    """Source: EC2 User Guide, best practices for spot. A pool with on-demand as a fallback is ignored."""
    for pool in subject.pools:
        types = _spot_types(subject, pool.pool)
        if 0 < types < FEW_SPOT_TYPES and is_spot_only(subject, pool.pool):
            yield Fault(_requirement_place(pool, CAPACITY_TYPE), f"{pool.name}: {_types(types)}", f"{FEW_SPOT_TYPES} or more")


@rule(
    "LINT-009",
    "info",
    "no spot-to-spot consolidation",
    why=f"spot-to-spot consolidation requires at least {SPOT_TO_SPOT_TYPES} cheaper instance types",
    fix="allow more instance types, or set consolidationPolicy: WhenEmpty if nodes are not to be replaced",
)
def no_spot_to_spot(subject: Subject) -> Iterator[Fault]:
    """Source: karpenter v1.14.1, MinInstanceTypesForSpotToSpotConsolidation."""
    for pool in subject.pools:
        types = _spot_types(subject, pool.pool)
        if FEW_SPOT_TYPES <= types < SPOT_TO_SPOT_TYPES and consolidates(pool.pool) and is_spot_only(subject, pool.pool):
            yield Fault(_requirement_place(pool, CAPACITY_TYPE), f"{pool.name}: {_types(types)}", f"{SPOT_TO_SPOT_TYPES} or more")


@rule(
    "LINT-010",
    "warning",
    "NodePool without limits",
    why="a misconfigured job, or a controller that keeps creating pods, adds nodes up to the account's quota",
    fix='limits: {cpu: "512", memory: 4096Gi}, somewhat above what the jobs need',
)
def no_limits(subject: Subject) -> Iterator[Fault]:
    """Source: karpenter v1.14.1: without limits a NodePool is unbounded."""
    for pool in subject.pools:
        if not pool.pool.spec.limits:
            yield Fault(pool.where, f"{pool.name}: no limits", "a limit of cpu, memory or nodes")


@rule(
    "LINT-011",
    "warning",
    "NodePool without disruption budget",
    why="by default, Karpenter may disrupt 10% of the nodes at a time, rounded up, at any hour",
    fix='disruption: {budgets: [{nodes: "1"}]}, or add a schedule and duration to define a maintenance window',
)
def no_budget(subject: Subject) -> Iterator[Fault]:
    """Source: karpenter v1.14.1, the CRD's default: one budget of 10 %."""
    for pool in subject.pools:
        if not (pool.pool.spec.disruption or {}).get("budgets"):
            yield Fault(pool.place("disruption"), f"{pool.name}: no budgets", "disruption.budgets")


@rule(
    "LINT-012",
    "warning",
    "consolidation evicts pods of streaming jobs",
    why="Karpenter evicts pods from underutilized nodes as soon as there is a cheaper placement; evicting an executor repeats tasks and "
    "reloads state, evicting the driver restarts the query",
    fix="consolidationPolicy: WhenEmpty, or a consolidateAfter of several minutes",
)
def eager_consolidation(subject: Subject) -> Iterator[Fault]:
    """Source: karpenter v1.14.1: the default is WhenEmptyOrUnderutilized with consolidateAfter 0s."""
    used = {pool.name for pods in _streaming(subject) for pool in pools_for(subject, pods)}
    for pool in subject.pools:
        if (not used or pool.name in used) and consolidates(pool.pool):
            after = str(_disruption(pool.pool, "consolidateAfter", DEFAULT_CONSOLIDATE_AFTER))
            after_s = seconds(after)
            if after_s is not None and after_s < SOON_S:
                given = f"{pool.name}: {_disruption(pool.pool, 'consolidationPolicy', DEFAULT_POLICY)}, consolidateAfter {after}"
                yield Fault(pool.place("disruption"), given, f"WhenEmpty, or consolidateAfter of at least {SOON_S}s")


@rule(
    "LINT-013",
    "warning",
    "NodePool allows both architectures",
    why="a single-architecture image fails on the other one with exec format error; Karpenter chooses the architecture by price",
    fix="kubernetes.io/arch In [amd64], or build a multi-architecture image and declare it: kubernetes.io/arch In [amd64, arm64]",
)
def any_architecture(subject: Subject) -> Iterator[Fault]:
    """Source: karpenter-provider-aws v1.14.1: without a requirement on the architecture, both are candidates."""
    for pool in subject.pools:
        if "kubernetes.io/arch" not in _by_label(pool.pool):
            types = types_of(subject, pool.pool)
            archs = subject.market.values(types, "kubernetes.io/arch")
            if {_AMD64, _ARM64} <= archs and not _pods_choose(subject, pool):
                yield Fault(pool.place("requirements"), f"{pool.name}: amd64 and arm64", "a requirement on kubernetes.io/arch")


@rule(
    "LINT-014",
    "warning",
    "nodes expire within a day",
    why="expired nodes are drained regardless of disruption budgets: their executors are moved, and a driver restarts its query",
    fix="expireAfter: 720h, or Never if upgrades replace the nodes",
)
def early_expiry(subject: Subject) -> Iterator[Fault]:
    """Source: karpenter v1.14.1: expiration is forceful since v1.0 and ignores budgets; the default is 720h."""
    for pool in subject.pools:
        expire_after = pool.pool.spec.template.spec.expire_after or DEFAULT_EXPIRE_AFTER
        age_s = seconds(expire_after)
        if age_s is not None and age_s < DAY_S:
            yield Fault(pool.place("expireAfter"), f"{pool.name}: expireAfter {expire_after}", "24h or more")


def consolidates(pool: NodePool) -> bool:
    """Whether Karpenter moves pods of a pool's nodes to reduce cost, in addition to removing empty nodes."""
    never = _disruption(pool, "consolidateAfter", DEFAULT_CONSOLIDATE_AFTER) == NEVER
    return _disruption(pool, "consolidationPolicy", DEFAULT_POLICY) != "WhenEmpty" and not never


def _disruption(pool: NodePool, field: str, default: str) -> object:
    return (pool.spec.disruption or {}).get(field) or default


def _streaming(subject: Subject) -> list[LintedPods]:
    return [pods for pods in subject.pods if pods.role in ("driver", "executor")]


def _pods_choose(subject: Subject, pool: LintedPool) -> bool:
    """Whether all pods that fit a pool require their own architecture."""
    candidates = [pods for pods in subject.pods if pool in pools_for(subject, pods)]
    return bool(candidates) and all("kubernetes.io/arch" in asked_labels(pods) for pods in candidates)


def asked_labels(pods: LintedPods) -> set[str]:
    """The labels that pods require of their node."""
    return {*pods.node_selector, *(one.key for term in pods.terms for one in term.match_expressions)}


def _by_label(pool: NodePool) -> dict[str, list[tuple[str, Allowed]]]:
    """A pool's requirements by label, as text and as a set, including its nodes' own labels."""
    by_label: dict[str, list[tuple[str, Allowed]]] = {}
    for one in pool.spec.template.spec.requirements:
        by_label.setdefault(NORMALIZED.get(one.key, one.key), []).append((_text(one), one.allowed))
    for label, value in pool.spec.template.metadata.labels.items():
        by_label.setdefault(NORMALIZED.get(label, label), []).append((f"the label {label}: {value}", one_of((value,))))
    return by_label


def _is_empty(parts: Iterable[Allowed]) -> bool:
    """Whether the intersection is empty, although a requirement needs a value."""
    all_of_them = list(parts)
    left = requirements(("label", values) for values in all_of_them).get("label")
    return not left.complement and not left.values and not all(values.is_negative for values in all_of_them)


def _binding(subject: Subject, pool: NodePool) -> list[int]:
    """The requirements whose removal would leave a value; all of them if no single one is decisive."""
    ones = pool.spec.template.spec.requirements
    deciding = [index for index in range(len(ones)) if subject.market.compatible(_without(ones, index))]
    return deciding or list(range(len(ones)))


def _without(ones: tuple[Requirement, ...], left_out: int) -> Requirements:
    return requirements((one.key, one.allowed) for index, one in enumerate(ones) if index != left_out)


def _compared(one: Requirement | NodeSelectorRequirement) -> Sequence[str]:
    """The values of a requirement; empty for an operator without values."""
    return one.values if one.operator in ("In", "NotIn") else ()


def _unknown(subject: Subject, where: Where, name: str, key: str, values: Sequence[str]) -> Iterator[Fault]:
    label = NORMALIZED.get(key, key)
    known = _known_values(subject, label)
    for value in values:
        if known and value not in known:
            severity: Severity | None = "warning" if _is_newer(subject, label, value) else None
            shown = f"one of {len(known):,} existing values" if len(known) > 12 else listed(known, 12)
            fix = meant(value, known, "use an existing value")
            yield Fault(where, f"{name}: {key} {value}", f"{shown} ({subject.catalog.region}, {subject.catalog.date})", fix, severity)


def _known_values(subject: Subject, label: str) -> set[str]:
    """The values of a label among instance types; empty if unknown."""
    if label not in WELL_KNOWN or label == OS:
        return set()
    values = subject.market.values((1 << len(subject.market.types)) - 1, label)
    return values | {RESERVED} if label == CAPACITY_TYPE else values


def _is_newer(subject: Subject, label: str, value: str) -> bool:
    """Whether a name belongs to a later generation than those of its category in the catalog."""
    if label == _GENERATION:
        return value.isdecimal() and int(value) > max(int(one.generation or 0) for one in subject.catalog.types)
    match = re.match(r"([a-z]+)([0-9]+)[a-z0-9-]*(\.[a-z0-9-]+)?$", value) if label in (_FAMILY, INSTANCE_TYPE) else None
    if match is None:
        return False
    generations = [int(one.generation or 0) for one in subject.catalog.types if one.category == match.group(1)]
    return bool(generations) and int(match.group(2)) > max(generations)


def _requirement_place(pool: LintedPool, label: str) -> Where:
    ones = pool.pool.spec.template.spec.requirements
    on_label = [index for index, one in enumerate(ones) if NORMALIZED.get(one.key, one.key) == label]
    return pool.place(*(f"requirements[{index}]" for index in reversed(on_label)), "requirements")


def _spot_types(subject: Subject, pool: NodePool) -> int:
    """Number of instance types that a pool can launch as spot."""
    if not allows_spot(subject, pool):
        return 0
    spot = requirements([(CAPACITY_TYPE, one_of((SPOT,)))])
    return subject.market.compatible(pool_requirements(pool).plus(spot)).bit_count()


def _types(count: int) -> str:
    return f"{count} instance type{'' if count == 1 else 's'}"


def _text(one: Requirement | NodeSelectorRequirement) -> str:
    values = f" [{', '.join(one.values)}]" if one.values else ""
    return f"{one.key} {one.operator}{values}"
