"""A decision of Karpenter as tables: the nodes, their pods, their possible types, their cost, and unschedulable pods."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping

from penstock.scripts.render.screen import Screen
from penstock.scripts.render.table import Column, table
from penstock.sizing.placement.decision import Decision, NodeClaim, Reason


def render(title: str, decision: Decision, screen: Screen) -> str:
    """The decision as text.

    Args:
        title: of the scenario.
        decision: what Karpenter decides.
        screen: where it goes.
    """
    rows = [f"{title}: {_headline(decision)}", ""]
    if decision.node_claims:
        rows += [*_claims(decision, screen), ""]
    if decision.existing_nodes:
        rows += [*_existing(decision.existing_nodes, screen), ""]
    if decision.unschedulable:
        rows += [*_unschedulable(decision, screen), ""]
    if any(claim.launch.capacity_type == "spot" for claim in decision.node_claims):
        rows += ["  EC2 picks a spot launch's type from the set by price and capacity.", ""]
    return "\n".join(rows)


def _headline(decision: Decision) -> str:
    launched = [claim for claim in decision.node_claims if not claim.launch.error]
    price = sum(claim.cheapest_usd_per_h or 0.0 for claim in launched)
    nodes = _count(len(decision.node_claims), "new node")
    waiting = sum(decision.unschedulable.values())
    from_price = f", from {price:.4f} USD/h with the cheapest types" if launched else ""
    return f"{nodes}{from_price}" + (f"; {_count(waiting, 'pod')} unschedulable" if waiting else "")


def _claims(decision: Decision, screen: Screen) -> list[str]:
    staged = any(claim.at_s is not None for claim in decision.node_claims)
    zoned = any(claim.zones is not None for claim in decision.node_claims)
    same = Counter(_cells(claim, staged, zoned) for claim in decision.node_claims)
    columns = [
        Column("nodes", right=True),
        *([Column("at", right=True)] if staged else []),
        Column("node pool"),
        Column("pods", wraps=True),
        *([Column("zones", wraps=True)] if zoned else []),
        Column("types", right=True),
        Column("launch", wraps=True),
        Column("cheapest"),
        Column("USD/h each", right=True),
    ]
    return table(columns, [(str(count), *cells) for cells, count in same.items()], screen)


def _cells(claim: NodeClaim, staged: bool, zoned: bool) -> tuple[str, ...]:
    launch = claim.launch
    sent = launch.error or f"{launch.capacity_type}, {_count(len(launch.instance_types), 'type')}"
    price = "-" if claim.cheapest_usd_per_h is None else f"{claim.cheapest_usd_per_h:.4f}"
    at = [f"{claim.at_s:g} s"] if staged else []
    zones = [", ".join(claim.zones) if claim.zones is not None else "any"] if zoned else []
    return (*at, claim.node_pool, _pods(claim.pods), *zones, str(len(claim.instance_types)), sent, claim.cheapest_type or "-", price)


def _existing(nodes: Mapping[str, Mapping[str, int]], screen: Screen) -> list[str]:
    return table([Column("existing node"), Column("new pods", wraps=True)], [(name, _pods(pods)) for name, pods in nodes.items()], screen)


def _unschedulable(decision: Decision, screen: Screen) -> Iterator[str]:
    for group, count in decision.unschedulable.items():
        yield f"  unschedulable: {_count(count, 'pod')} of {group}"
        for reason in decision.reasons:
            if reason.group == group:
                yield from _because(reason, screen.prose)


def _because(reason: Reason, width: int) -> list[str]:
    text = f"{reason.pool}: {reason.why}" if reason.pool else reason.why
    return textwrap.wrap(text, width, initial_indent="    ", subsequent_indent="      ", break_long_words=False, break_on_hyphens=False)


def _pods(pods: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {group}" for group, count in pods.items() if count)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
