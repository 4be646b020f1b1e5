"""Rules on the versions of EKS and Karpenter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from penstock.sizing.lint.durations import day_number
from penstock.sizing.lint.finding import Severity
from penstock.sizing.lint.names import listed
from penstock.sizing.lint.rule import Fault, rule
from penstock.sizing.lint.subject import Subject

SOON_DAYS = 90
_DATA = Path(__file__).parent.parent / "data" / "eks-versions.json"


class EksVersion(BaseModel):
    """Support dates of one version of EKS.

    Args:
        standard_until: the last day of standard support, ISO date.
        extended_until: the last day of extended support.
        karpenter: the first version of Karpenter that supports it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    standard_until: str
    extended_until: str
    karpenter: str


@rule(
    "LINT-060",
    "error",
    "EKS version out of standard support",
    why="in extended support, the cluster costs six times as much; when that ends, EKS upgrades it automatically",
    fix="upgrade, one minor version at a time",
)
def support_ended(subject: Subject) -> Iterator[Fault]:
    """Source: Amazon EKS User Guide, Kubernetes versions; EKS prices. A warning if the environment sets extendedSupport: true."""
    version = _version(subject)
    if subject.versions is None or version is None or subject.today <= version.standard_until:
        return
    price = _facts()["usd_per_h"]
    if subject.today > version.extended_until:
        need = f"{_supported(subject)}; extended support of it ended on {version.extended_until}"
        yield Fault(subject.versions.place("eks"), subject.versions.eks, need)
        return
    cost = f"extended support costs {price['extended']:.2f} $ an hour instead of {price['standard']:.2f} $ until {version.extended_until}"
    severity: Severity | None = "warning" if subject.versions.extended_support else None
    need = f"{_supported(subject)}; it ended on {version.standard_until}, {cost}"
    yield Fault(subject.versions.place("eks"), subject.versions.eks, need, severity=severity)


@rule(
    "LINT-061",
    "warning",
    "EKS version close to end of support",
    why="a cluster upgrade takes weeks if jobs run continuously; after this date, the cluster costs six times as much",
    fix="plan the upgrade",
)
def support_ends_soon(subject: Subject) -> Iterator[Fault]:
    """Source: Amazon EKS User Guide, Kubernetes versions."""
    version = _version(subject)
    if subject.versions is None or version is None or subject.today > version.standard_until:
        return
    left = day_number(version.standard_until) - day_number(subject.today)
    if left <= SOON_DAYS:
        days = "day" if left == 1 else "days"
        need = f"{_supported(subject)}; standard support of {subject.versions.eks} ends on {version.standard_until}, in {left} {days}"
        yield Fault(subject.versions.place("eks"), subject.versions.eks, need)


@rule(
    "LINT-062",
    "error",
    "unknown EKS version",
    why="EKS rejects versions that it does not offer",
    fix="use a version that EKS offers",
)
def unknown_version(subject: Subject) -> Iterator[Fault]:
    """Source: Amazon EKS User Guide, Kubernetes versions. A version newer than those known is a warning: it may be a new one."""
    if subject.versions is not None and _version(subject) is None:
        known = eks_versions()
        newer = _parts(subject.versions.eks) > max(map(_parts, known))
        need = f"one of {listed(known)}, as known on {_facts()['date']}"
        yield Fault(subject.versions.place("eks"), subject.versions.eks, need, severity="warning" if newer else None)


@rule(
    "LINT-063",
    "error",
    "Karpenter too old for this Kubernetes version",
    why="an older Karpenter fails to start, or does not handle nodes and pods of a newer API",
    fix="upgrade Karpenter first, then the cluster",
)
def karpenter_too_old(subject: Subject) -> Iterator[Fault]:
    """Source: Karpenter's compatibility matrix."""
    version = _version(subject)
    if subject.versions is not None and version is not None and _parts(subject.versions.karpenter) < _parts(version.karpenter):
        need = f"{version.karpenter} or later for Kubernetes {subject.versions.eks}"
        yield Fault(subject.versions.place("karpenter", "eks"), subject.versions.karpenter, need)


def eks_versions() -> dict[str, EksVersion]:
    """The known versions of EKS."""
    return {name: EksVersion.model_validate(dates) for name, dates in _facts()["versions"].items()}


def _version(subject: Subject) -> EksVersion | None:
    return eks_versions().get(subject.versions.eks) if subject.versions else None


def _supported(subject: Subject) -> str:
    """The versions with the longest remaining standard support, as text."""
    later = [name for name, dates in eks_versions().items() if dates.standard_until >= subject.today]
    newest = max(later, key=_parts, default="")
    return f"{newest}, in standard support until {eks_versions()[newest].standard_until}" if newest else "a version in standard support"


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


@cache
def _facts() -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(_DATA.read_text("utf-8"))
    return facts
