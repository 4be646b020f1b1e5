"""The topologies of one scheduling run: how many pods each domain has, and which domains remain for the next pod.

Source: karpenter v1.14.1 (``topology.go``, ``topologygroup.go``, ``topologydomaingroup.go``). Of several equal domains Karpenter takes
any, in the order of a Go map; here the first by name.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from penstock.sizing.catalog.labels import HOSTNAME
from penstock.sizing.placement.hosts import Node
from penstock.sizing.placement.market import Market
from penstock.sizing.placement.pods import Group
from penstock.sizing.placement.pools import Pool
from penstock.sizing.placement.requirements import ABSENT, ANY, Allowed, Requirements, one_of, requirements
from penstock.sizing.placement.taints import Taint, not_tolerated
from penstock.sizing.placement.topology_rules import Rule
from penstock.sizing.placement.wishes import Wish

# The domains of a label, each with the taints of the NodePools that have it.
Domains = Mapping[str, Sequence[Sequence[Taint]]]


class TopologyGroup:
    """A rule with the pods that it counts, by domain.

    Args:
        rule: the first rule with this identity.
        domains: the domains of its label.
    """

    def __init__(self, rule: Rule, domains: Domains) -> None:
        self.rule = rule
        self.counts: dict[str, int] = {
            domain: 0
            for domain, tainted in domains.items()
            if not rule.honors_taints or any(not_tolerated(taints, rule.tolerations) is None for taints in tainted)
        }

    def __str__(self) -> str:
        return ", ".join(f"{count} in {domain}" for domain, count in sorted(self.counts.items())) or "no node has the label"

    def record(self, domains: Iterable[str], pods: int = 1) -> None:
        """Counts pods in domains."""
        for domain in domains:
            self.counts[domain] = self.counts.get(domain, 0) + pods

    def on_host(self, host: str, selected: bool) -> bool:
        """Whether a pod may be placed on a node, for rules over host names.

        Args:
            host: name of the node, which may be new.
            selected: whether the rule counts the pod itself.
        """
        count = self.counts.get(host, 0)
        if self.rule.kind == "topology spread":
            # A new node is always possible: the global minimum is 0.
            return count + selected <= self.rule.max_skew
        if self.rule.kind == "pod anti-affinity":
            return count == 0
        return count > 0 or (selected and not any(self.counts.values()))

    def next_domains(self, pod: Allowed, node: Allowed, selected: bool) -> Allowed:
        """The domains for the next pod, for rules over other labels.

        Args:
            pod: domains that the pod itself requires.
            node: domains of the node.
            selected: whether the rule counts the pod itself.

        Returns:
            One domain for a spread, otherwise all that remain; none if the rule cannot be met.
        """
        if self.rule.kind == "topology spread":
            return self._least_used(pod, node, selected)
        if self.rule.kind == "pod anti-affinity":
            return one_of(name for name, count in self.counts.items() if not count and node.has(name) and pod.has(name))
        used = [name for name, count in self.counts.items() if count and pod.has(name)]
        options = [name for name in used if node.has(name)]
        if not options and not used and selected:
            # The first pod of an affinity to itself may choose: a domain of the node, and independently one of its own.
            both = pod.intersection(node)
            known = sorted(self.counts)
            options = [name for name in known if both.has(name)][:1] + [name for name in known if pod.has(name)][:1]
        return one_of(options)

    def _least_used(self, pod: Allowed, node: Allowed, selected: bool) -> Allowed:
        own = [count for name, count in self.counts.items() if pod.has(name)]
        least = min(own, default=0)
        if self.rule.min_domains is not None and len(own) < self.rule.min_domains:
            least = 0
        valid = [(count, name) for name, count in self.counts.items() if node.has(name) and count + selected - least <= self.rule.max_skew]
        return one_of([min(valid)[1]]) if valid else ABSENT


class Topology:
    """All topologies of one scheduling run.

    Args:
        market: the instance types.
        pools: all NodePools.
        nodes: existing nodes with their running pods.
        groups: the groups of pods.
    """

    def __init__(self, market: Market, pools: Sequence[Pool], nodes: Sequence[Node], groups: Sequence[Group]) -> None:
        self._market = market
        self._pools = pools
        self._nodes = nodes
        self._groups = {group.name: group for group in groups}
        self._domains: dict[str, Domains] = {}
        self._by_rule: dict[Hashable, TopologyGroup] = {}
        # Anti-affinity holds both ways: the domains of the pods that repel others.
        self._repelling: dict[Hashable, TopologyGroup] = {}
        self._owned: dict[Wish, tuple[TopologyGroup, ...]] = {}
        self._narrowed: dict[tuple[Wish, str, Requirements, bool], Requirements | None] = {}
        self._matching: dict[tuple[Wish, str], tuple[TopologyGroup, ...]] = {}
        for node in nodes:
            for name, count in node.running.items():
                self._repel(self._groups[name], node, count)

    @property
    def is_empty(self) -> bool:
        """Whether no pod has a topology rule."""
        return not any(group.repels or any(wish.rules for wish in group.wishes) for group in self._groups.values())

    def add(self, group: Group) -> None:
        """Adds the pending pods of a group, before any of them is placed."""
        self._repel(group)
        self._own(group.wishes[0])

    def relaxed(self, wish: Wish) -> None:
        """A pod was relaxed: rules that it did not have before count running pods only, not those placed in this run."""
        self._own(wish)

    def concerns(self, group: Group, wish: Wish) -> bool:
        """Whether any topology affects where a pod may be placed."""
        return bool(self._matching_groups(group, wish))

    def is_full(self, group: Group, wish: Wish, host: str) -> bool:
        """Whether a rule over host names forbids a node for good: nodes only ever fill up."""
        return any(
            each.rule.key == HOSTNAME and each.rule.kind != "pod affinity" and not each.on_host(host, each.rule.selects(group.pod))
            for each in self._matching_groups(group, wish)
        )

    def on_host(self, group: Group, wish: Wish, host: str) -> bool:
        """Whether the rules over host names allow a node."""
        return all(
            each.on_host(host, each.rule.selects(group.pod)) for each in self._matching_groups(group, wish) if each.rule.key == HOSTNAME
        )

    def narrowed(self, group: Group, wish: Wish, node: Requirements, *, undefined_well_known: bool = True) -> Requirements | None:
        """The requirements of a node after the rules over other labels have chosen domains.

        Args:
            group: group of the pod.
            wish: requirements of the pod.
            node: requirements of the node, including those of the pod.
            undefined_well_known: whether the node gets well-known labels that it does not name from its instance type.

        Returns:
            None if a rule cannot be met.
        """
        # Many claims have the same requirements: the answer holds for all of them until the next pod is placed.
        known = (wish, group.name, node, undefined_well_known)
        if known not in self._narrowed:
            self._narrowed[known] = self._choose(group, wish, node, undefined_well_known)
        return self._narrowed[known]

    def _choose(self, group: Group, wish: Wish, node: Requirements, undefined_well_known: bool) -> Requirements | None:
        chosen: dict[str, Allowed] = {}
        for each in self._matching_groups(group, wish):
            key = each.rule.key
            if key == HOSTNAME:
                continue
            domains = each.next_domains(wish.strict.get(key), node.get(key), each.rule.selects(group.pod))
            if not domains.values:
                return None
            chosen[key] = domains.intersection(chosen.get(key, node.get(key)))
        if not chosen:
            return node
        added = requirements(chosen.items())
        return None if node.conflict(added, undefined_well_known=undefined_well_known) is not None else node.plus(added)

    def refusal(self, group: Group, wish: Wish, node: Requirements) -> str | None:
        """The first rule that no new node with these requirements can meet, as text; None if each can be met."""
        for each in self._matching_groups(group, wish):
            if each.rule.key == HOSTNAME:
                continue
            domains = each.next_domains(wish.strict.get(each.rule.key), node.get(each.rule.key), each.rule.selects(group.pod))
            if not domains.values or node.conflict(requirements([(each.rule.key, domains)])) is not None:
                return f"{each.rule}; pods by domain: {each}"
        return None if self.narrowed(group, wish, node) is not None else "no domain meets all topology rules of the pods"

    def record(self, group: Group, host: str, taints: Sequence[Taint], node: Requirements) -> None:
        """Counts a placed pod.

        Args:
            group: group of the pod.
            host: name of the node.
            taints: of the node.
            node: requirements of the node with the pod.
        """
        self._narrowed.clear()
        for each in self._by_rule.values():
            if each.rule.counts(group.pod, taints, node):
                domains = _domains(each.rule, host, node)
                # Anti-affinity blocks every domain that the pod may end up in; the others count it once there is only one.
                if each.rule.kind == "pod anti-affinity" or (not domains.complement and len(domains.values) == 1):
                    each.record(domains.values)
        for rule in group.repels:
            self._repelling[rule.identity].record(_domains(rule, host, node).values)

    def _matching_groups(self, group: Group, wish: Wish) -> tuple[TopologyGroup, ...]:
        key = (wish, group.name)
        if key not in self._matching:
            repelling = tuple(each for each in self._repelling.values() if each.rule.selects(group.pod))
            self._matching[key] = self._own(wish) + repelling
        return self._matching[key]

    def _own(self, wish: Wish) -> tuple[TopologyGroup, ...]:
        if wish not in self._owned:
            groups = {rule.identity: self._by_rule.get(rule.identity) or self._counted(rule) for rule in reversed(wish.rules)}
            self._by_rule.update(groups)
            self._owned[wish] = tuple(groups.values())
        return self._owned[wish]

    def _counted(self, rule: Rule) -> TopologyGroup:
        made = TopologyGroup(rule, self._domains_of(rule.key))
        for node in self._nodes:
            domain = _domains(rule, node.name, node.requirements)
            if domain.complement or not domain.values:
                continue
            if rule.nodes is None or rule.nodes.matches(node.taints, node.requirements):
                made.record(domain.values, 0)
            for name, count in node.running.items():
                if count and rule.counts_running(self._groups[name].pod, node.taints, node.requirements):
                    made.record(domain.values, count)
        return made

    def _repel(self, group: Group, on: Node | None = None, pods: int = 0) -> None:
        for rule in group.repels:
            made = self._repelling.setdefault(rule.identity, TopologyGroup(rule, self._domains_of(rule.key)))
            if on is not None and pods:
                made.record(_domains(rule, on.name, on.requirements).values, pods)

    def _domains_of(self, key: str) -> Domains:
        if key not in self._domains:
            found: dict[str, list[tuple[Taint, ...]]] = {}
            for pool in self._pools:
                for domain in _domains_of_pool(self._market, pool, key):
                    found.setdefault(domain, []).append(pool.taints)
            self._domains[key] = found
        return self._domains[key]


def _domains(rule: Rule, host: str, node: Requirements) -> Allowed:
    return one_of((host,)) if rule.key == HOSTNAME else node.get(rule.key)


def _domains_of_pool(market: Market, pool: Pool, key: str) -> set[str]:
    """All values that nodes of a NodePool may have, of any instance type, and those that it names itself."""
    own = pool.requirements.by_label.get(key)
    domains: set[str] = set(own.values) if own is not None and not own.complement else set()
    for had in market.label_sets(key) or ((own,) if own is not None else ()):
        domains |= (own or ANY).intersection(had).values
    return domains
