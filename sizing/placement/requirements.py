"""Karpenter's sets of label values and their intersections: the requirements of NodePools and pods, and the labels of instance types.

Source: karpenter v1.14.1 (``pkg/scheduling/requirement.go`` and ``requirements.go``). A set is finite (``In``; ``DoesNotExist`` is the
empty one), or the complement of a finite set with bounds (``NotIn``, ``Exists``, ``Gt``, ``Lt``, ``Gte``, ``Lte``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar, NamedTuple
from weakref import WeakValueDictionary

from penstock.sizing.catalog.labels import NORMALIZED, WELL_KNOWN

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_MAX_INT = 2**63 - 1


class Allowed(NamedTuple):
    """The allowed values of one label.

    Args:
        complement: whether `values` are excluded instead of allowed.
        values: allowed values, or with `complement` excluded ones.
        least: inclusive lower bound of a complement; None: unbounded.
        most: inclusive upper bound of a complement; None: unbounded.
        min_values: distinct values that a claim's instance types must have (``minValues``); None: any number.
    """

    complement: bool
    values: frozenset[str]
    least: int | None = None
    most: int | None = None
    min_values: int | None = None

    @property
    def is_negative(self) -> bool:
        """Whether it is an exclusion: ``NotIn`` or ``DoesNotExist``, which a missing label satisfies."""
        return bool(self.values) if self.complement else not self.values

    def has(self, value: str) -> bool:
        """Whether a value is allowed."""
        return (value in self.values) != self.complement and _within(value, self.least, self.most)

    def meets(self, other: Allowed) -> bool:
        """Whether any value is allowed by both."""
        least, most = _larger(self.least, other.least), _smaller(self.most, other.most)
        if least is not None and most is not None and least > most:
            return False
        if self.complement and other.complement:
            return True
        if self.complement:
            return any(_within(value, least, most) for value in other.values - self.values)
        common = self.values - other.values if other.complement else self.values & other.values
        return any(_within(value, least, most) for value in common)

    def intersection(self, other: Allowed) -> Allowed:
        """The values that both allow, and the larger of the two `min_values`."""
        least, most = _larger(self.least, other.least), _smaller(self.most, other.most)
        min_values = _larger(self.min_values, other.min_values)
        if least is not None and most is not None and least > most:
            return Allowed(complement=False, values=frozenset(), min_values=min_values)
        if self.complement and other.complement:
            forbidden = frozenset(value for value in self.values | other.values if _within(value, least, most))
            return Allowed(True, forbidden, least, most, min_values)
        if self.complement:
            values = other.values - self.values
        else:
            values = self.values - other.values if other.complement else self.values & other.values
        return Allowed(False, frozenset(value for value in values if _within(value, least, most)), min_values=min_values)

    def __str__(self) -> str:
        bounds = [f">= {self.least}"] * (self.least is not None) + [f"<= {self.most}"] * (self.most is not None)
        listed = ", ".join(sorted(self.values))
        if self.complement:
            words = ([f"not {listed}"] if self.values else []) + bounds
            return " and ".join(words) or "any value"
        return listed or "no value"


ANY = Allowed(complement=True, values=frozenset())
ABSENT = Allowed(complement=False, values=frozenset())


def one_of(values: Iterable[str]) -> Allowed:
    """Exactly these values."""
    return Allowed(complement=False, values=frozenset(values))


def allowed(operator: str, values: Iterable[str], min_values: int | None = None) -> Allowed:
    """The set for an operator of Kubernetes or Karpenter; the values are already validated.

    Args:
        operator: In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte.
        values: texts; one integer for the last four.
        min_values: ``minValues`` of a NodePool's requirement.
    """
    given = tuple(values)
    if operator in ("In", "DoesNotExist"):
        return Allowed(False, frozenset(given if operator == "In" else ()), min_values=min_values)
    if operator in ("NotIn", "Exists"):
        return Allowed(True, frozenset(given if operator == "NotIn" else ()), min_values=min_values)
    bound = int(given[0])
    if operator in ("Gt", "Gte"):
        # No value is greater than the largest integer; Karpenter drops minValues here too.
        return ABSENT if operator == "Gt" and bound == _MAX_INT else ANY._replace(least=bound + (operator == "Gt"), min_values=min_values)
    return ANY._replace(most=bound - (operator == "Lt"), min_values=min_values)


class Requirements:
    """The requirements by label; immutable and interned: equal contents are the same object.

    Identity makes results for a set of requirements cheap to cache.
    """

    __slots__ = ("__weakref__", "_added", "_compatible", "by_label", "has_min_values")

    _known: ClassVar[WeakValueDictionary[frozenset[tuple[str, Allowed]], Requirements]] = WeakValueDictionary()

    by_label: Mapping[str, Allowed]
    has_min_values: bool
    _added: dict[Requirements, Requirements]
    _compatible: dict[tuple[Requirements, bool], str | None]

    def __new__(cls, by_label: Mapping[str, Allowed]) -> Requirements:
        """The object for these contents."""
        key = frozenset(by_label.items())
        known = cls._known.get(key)
        if known is None:
            known = super().__new__(cls)
            known.by_label = dict(by_label)
            known.has_min_values = any(values.min_values is not None for values in by_label.values())
            known._added, known._compatible = {}, {}
            cls._known[key] = known
        return known

    def get(self, label: str) -> Allowed:
        """The allowed values of a label; any value if it has no requirement."""
        return self.by_label.get(label, ANY)

    def plus(self, other: Requirements) -> Requirements:
        """The intersection of two sets of requirements."""
        combined = self._added.get(other)
        if combined is None:
            merged = dict(self.by_label)
            for label, values in other.by_label.items():
                merged[label] = values.intersection(merged[label]) if label in merged else values
            combined = self._added[other] = Requirements(merged)
        return combined

    def conflict(self, incoming: Requirements, *, undefined_well_known: bool = True) -> str | None:
        """The first label on which these requirements and incoming ones conflict.

        A label that only the incoming ones name is a conflict, unless they are an exclusion, or the label is well-known and
        `undefined_well_known` is set (as for new nodes, whose instance type provides it).
        """
        key = (incoming, undefined_well_known)
        if key not in self._compatible:
            self._compatible[key] = self._find_conflict(incoming, undefined_well_known)
        return self._compatible[key]

    def _find_conflict(self, incoming: Requirements, undefined_well_known: bool) -> str | None:
        for label, values in incoming.by_label.items():
            if not (undefined_well_known and label in WELL_KNOWN) and label not in self.by_label and not values.is_negative:
                return label
        for label, values in incoming.by_label.items():
            mine = self.by_label.get(label)
            if mine is not None and not mine.meets(values) and not (mine.is_negative and values.is_negative):
                return label
        return None


def requirements(pairs: Iterable[tuple[str, Allowed]]) -> Requirements:
    """Combines single requirements, several of which may be on one label; deprecated label names are mapped to the current ones."""
    merged: dict[str, Allowed] = {}
    for name, values in pairs:
        label = NORMALIZED.get(name, name)
        merged[label] = values.intersection(merged[label]) if label in merged else values
    return Requirements(merged)


def _within(value: str, least: int | None, most: int | None) -> bool:
    if least is None and most is None:
        return True
    if not _INTEGER.fullmatch(value) or not -_MAX_INT - 1 <= int(value) <= _MAX_INT:
        return False
    return (least is None or int(value) >= least) and (most is None or int(value) <= most)


def _larger(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)


def _smaller(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)
