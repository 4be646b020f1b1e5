"""Rules on pod scheduling: selectors, tolerations, and the driver's node."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sizing.catalog.labels import NORMALIZED, WELL_KNOWN
from penstock.sizing.lint.finding import Severity
from penstock.sizing.lint.fit import asked, may_be_spot, pools_for, selects, untolerated
from penstock.sizing.lint.names import listed, meant
from penstock.sizing.lint.node_pools import asked_labels, consolidates
from penstock.sizing.lint.rule import Fault, rule
from penstock.sizing.lint.subject import LintedPods, Subject
from penstock.sizing.placement.pools import pool_requirements
from penstock.sizing.placement.taints import PREFER_NO_SCHEDULE

# Source: karpenter v1.14.1.
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
# Source: labels that EKS and eksctl set on nodes outside of Karpenter; a hostname refers to an existing node.
_NODE_GROUPS = {
    "eks.amazonaws.com/nodegroup",
    "eks.amazonaws.com/compute-type",
    "alpha.eksctl.io/nodegroup-name",
    "karpenter.sh/controller",
    "kubernetes.io/hostname",
}
# Labels that do not indicate who manages the node.
_COMMON = {"kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/arch"}


@rule(
    "LINT-001",
    "error",
    "no NodePool matches the node selector",
    why="the pods stay Pending: Karpenter creates nodes only from its NodePools",
    fix="select labels of a NodePool, or add them to its template",
)
def no_pool_selected(subject: Subject) -> Iterator[Fault]:
    """Source: karpenter v1.14.1: a pod's node selector and required affinity must meet the requirements and labels of a NodePool."""
    for pods in subject.pods:
        if subject.pools and not _is_elsewhere(pods) and not any(selects(subject, pods, pool.pool) for pool in subject.pools):
            label = _culprit(subject, pods)
            where = pods.place(f"nodeSelector.{label}", "nodeSelector", "affinity")
            yield Fault(where, f"{pods.name}: {_shown(pods, label)}", _has(subject, label), _likely(subject, pods, label))


@rule(
    "LINT-002",
    "error",
    "pods do not tolerate the taints of any NodePool",
    why="the pods stay Pending: every NodePool that they select has a taint they do not tolerate",
    fix="add the toleration, or select another NodePool",
)
def no_pool_tolerated(subject: Subject) -> Iterator[Fault]:
    """Source: karpenter v1.14.1: a pod must tolerate all the taints of a NodePool; except startup taints and PreferNoSchedule."""
    for pods in subject.pods:
        selected = [pool for pool in subject.pools if _is_meant_for_pools(pods) and selects(subject, pods, pool.pool)]
        in_the_way = [(pool, untolerated(pods, pool.pool)) for pool in selected]
        if in_the_way and all(taint is not None for _, taint in in_the_way):
            need = "; ".join(f"{pool.name} has {taint}" for pool, taint in in_the_way)
            yield Fault(pods.place("tolerations", "nodeSelector"), f"{pods.name}: {_tolerations(pods)}", f"a toleration: {need}")


@rule(
    "LINT-003",
    "warning",
    "NodePool with taints that no pod tolerates",
    why="the NodePool never gets a node for these pods: they run elsewhere, or not at all",
    fix="add the toleration to the pods, or remove the NodePool",
)
def pool_never_used(subject: Subject) -> Iterator[Fault]:
    """Source: karpenter v1.14.1: taints of the template."""
    for pool in subject.pools:
        taints = [taint.taint for taint in pool.pool.spec.template.spec.taints if taint.effect != PREFER_NO_SCHEDULE]
        candidates = [pods for pods in subject.pods if _is_meant_for_pools(pods)]
        if taints and candidates and subject.all_pods and all(untolerated(pods, pool.pool) is not None for pods in candidates):
            names = listed({pods.name for pods in candidates})
            yield Fault(pool.place("taints"), f"{pool.name}: {', '.join(map(str, taints))}", f"a toleration in one of {names}")


@rule(
    "LINT-020",
    "error",
    "driver may run on spot",
    why="losing the driver stops the query with all its executors, and it restarts from the checkpoint; lost executors are just replaced",
    fix="nodeSelector karpenter.sh/capacity-type: on-demand, or a dedicated on-demand NodePool with its own label",
)
def driver_on_spot(subject: Subject) -> Iterator[Fault]:
    """Source: Spark: the driver holds the query. Only a warning if Karpenter tries an on-demand NodePool first."""
    for pods in subject.pods:
        if pods.role == "driver":
            pools = pools_for(subject, pods)
            spot = [may_be_spot(subject, pods, pool.pool) for pool in pools]
            if any(spot):
                names = listed({pool.name for pool, on_spot in zip(pools, spot, strict=True) if on_spot})
                severity: Severity | None = None if spot[0] else "warning"
                yield Fault(pods.place("nodeSelector"), f"{pods.name}: spot in {names}", "on-demand nodes only", severity=severity)


@rule(
    "LINT-021",
    "warning",
    "driver not protected from disruption",
    why="consolidation may evict the driver, which restarts the query each time",
    fix=f'annotate the driver pod with {DO_NOT_DISRUPT}: "true", or set consolidationPolicy: WhenEmpty in its NodePool',
)
def driver_not_protected(subject: Subject) -> Iterator[Fault]:
    """Source: karpenter v1.14.1: the annotation and a PodDisruptionBudget that allows no eviction both block consolidation."""
    for pods in subject.pods:
        pools = [pool.name for pool in pools_for(subject, pods) if consolidates(pool.pool)] if pods.role == "driver" else []
        if pools and not _is_protected(subject, pods):
            yield Fault(pods.place("annotations"), f"{pods.name}: may be moved in {listed(pools)}", f"{DO_NOT_DISRUPT}, or a budget")


def _is_meant_for_pools(pods: LintedPods) -> bool:
    """Whether pods are meant for Karpenter's nodes: a cluster also has others, for its own controllers."""
    return pods.role != "other" or (bool(asked_labels(pods) - _COMMON) and not _is_elsewhere(pods))


def _is_elsewhere(pods: LintedPods) -> bool:
    """Whether pods select nodes that Karpenter does not manage."""
    return bool(asked_labels(pods) & _NODE_GROUPS)


def _is_protected(subject: Subject, pods: LintedPods) -> bool:
    budgeted = any(
        budget.match_labels and all(pods.labels.get(label) == value for label, value in budget.match_labels.items())
        for budget in subject.budgets
    )
    return budgeted or pods.annotations.get(DO_NOT_DISRUPT, "").lower() == "true"


def _culprit(subject: Subject, pods: LintedPods) -> str:
    """The label that most NodePools do not satisfy; empty if the labels match and no instance type is left."""
    conflicts = [pool_requirements(pool.pool).conflict(wanted) for pool in subject.pools for wanted in asked(pods)]
    named = [label for label in conflicts if label is not None]
    return max(named, key=lambda label: (named.count(label), label)) if named else ""


def _shown(pods: LintedPods, label: str) -> str:
    texts = [f"{key}: {value}" for key, value in pods.node_selector.items() if NORMALIZED.get(key, key) == label or not label]
    expressions = [one for term in pods.terms for one in term.match_expressions if NORMALIZED.get(one.key, one.key) == label or not label]
    return ", ".join([*texts, *(f"{one.key} {one.operator} [{', '.join(one.values)}]" for one in expressions)])


def _has(subject: Subject, label: str) -> str:
    if not label:
        return "a NodePool with an instance type that has all of these labels"
    values = {pool.name: pool_requirements(pool.pool).by_label.get(label) for pool in subject.pools}
    said = [f"{name} has {allowed}" for name, allowed in values.items() if allowed is not None]
    return f"a NodePool with it: {'; '.join(said)}" if said else f"a NodePool with the label {label}; none has it"


def _likely(subject: Subject, pods: LintedPods, label: str) -> str:
    if not label:
        return ""
    if label not in WELL_KNOWN and not any(label in pool_requirements(pool.pool).by_label for pool in subject.pools):
        own = {name for pool in subject.pools for name in pool.pool.spec.template.metadata.labels}
        return meant(label, own, "")
    allowed = [pool_requirements(pool.pool).get(label) for pool in subject.pools]
    values = {value for one in allowed if not one.complement for value in one.values}
    selected = {value for wanted in asked(pods) for value in wanted.get(label).values}
    return meant(next(iter(sorted(selected)), ""), values, "")


def _tolerations(pods: LintedPods) -> str:
    shown = [f"{one.key}={one.value}:{one.effect}" if one.value else f"{one.key or 'any'}:{one.effect}" for one in pods.tolerations]
    return f"tolerates {', '.join(shown)}" if shown else "tolerates nothing"
