"""Requirements of an environment before it is deployed, in addition to those of its plans.

They depend on the date or on the region's catalog, so the document alone cannot be checked for them: an EKS version may be out of
support
today that was supported yesterday. An environment that is only used for sizing need not meet them.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from penstock.infra.driver_pools import leave_drivers_alone
from penstock.infra.environment import Environment
from penstock.infra.environment_names import refuse_beginnings
from penstock.infra.errors import EksVersionUnknown, EksVersionUnsupported, NoAdministrator, ZoneUnknown
from penstock.infra.parts.eks import Eks
from penstock.infra.plans import EnvironmentPlans, plans
from penstock.infra.private_network import private_network_faults
from penstock.jobs.document import Path_
from penstock.sizing.cluster import Cluster
from penstock.sizing.errors import PenstockError, raise_all
from penstock.sizing.lint.versions import EksVersion, eks_versions


def deployable_plans(environment: Environment) -> EnvironmentPlans:
    """The plans of an environment's jobs, if it can be deployed today.

    Args:
        environment: to be deployed.

    Raises:
        PenstockError: as `plans`, `refuse_beginnings` and `refuse_undeployable`; INF-031 for existing NodePools.
    """
    planned = plans(environment)
    refuse_beginnings(environment)
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    refuse_undeployable(environment, planned.cluster, today=today)
    existing = environment.existing_cluster
    if existing is not None and existing.node_pools == "existing" and planned.together is not None:
        # Of its own NodePools, the stack that creates them makes sure.
        leave_drivers_alone(environment, planned.together.nodes)
    return planned


def refuse_undeployable(environment: Environment, cluster: Cluster | None, *, today: str) -> None:
    """Raises all faults that prevent a deploy of an environment together.

    Args:
        environment: to be deployed.
        cluster: its cluster; None: it has no cluster, and nothing is checked.
        today: ISO date, such as ``2026-11-21``.

    Raises:
        PenstockError: INF-020 to INF-023, INF-056, INF-057; several are raised as `Faults`.
    """
    if environment.spec.eks is None or cluster is None:
        return
    faults = [
        *_versions(environment.spec.eks, today),
        *_administrators(environment),
        *_zones(cluster),
        *private_network_faults(environment),
    ]
    raise_all(environment.locate(fault, *path) for path, fault in faults)


def _versions(eks: Eks, today: str) -> Iterator[tuple[Path_, PenstockError]]:
    """Source: Amazon EKS User Guide, Kubernetes versions. A version above all known ones may have been released since."""
    path: Path_ = ("spec", "eks", "version")
    known = eks_versions()
    dates = known.get(eks.version)
    fix = _fix(known, today)
    if dates is None:
        if _minor(eks.version) < max(map(_minor, known)):
            yield path, EksVersionUnknown(given=eks.version, need=f"one of {', '.join(known)}", fix=fix)
    elif today > dates.extended_until:
        need = f"a supported version; extended support for this one ended on {dates.extended_until}"
        yield path, EksVersionUnsupported(given=eks.version, need=need, fix=fix)
    elif today > dates.standard_until and not eks.extended_support:
        need = f"a version in standard support; standard support for this one ended on {dates.standard_until}"
        extended = f"{fix}; or extendedSupport: true, at six times the price, until {dates.extended_until}"
        yield path, EksVersionUnsupported(given=eks.version, need=need, fix=extended)


def _fix(known: dict[str, EksVersion], today: str) -> str:
    supported = [version for version, dates in known.items() if dates.standard_until >= today]
    newest = max(supported, key=_minor, default="")
    return f'version: "{newest}", in standard support until {known[newest].standard_until}' if newest else "use a version that EKS supports"


def _minor(version: str) -> int:
    return int(version.partition(".")[2])


def _administrators(environment: Environment) -> Iterator[tuple[Path_, PenstockError]]:
    """An emulated cluster has no Kubernetes API to grant access to."""
    spec = environment.spec
    # The owners of an existing cluster have admitted the caller, or not: the API server answers that.
    if spec.eks is not None and spec.eks.existing is None and not spec.eks.admins and spec.endpoints is None:
        need = "at least the role that deploys: creating the cluster does not grant access to it"
        yield ("spec", "eks", "admins"), NoAdministrator(need=need, fix=f"admins: [arn:aws:iam::{spec.account}:role/NAME]")


def _zones(cluster: Cluster) -> Iterator[tuple[Path_, PenstockError]]:
    known = sorted({zone for instance in cluster.catalog.types for zone in instance.zones})
    for index, zone in enumerate(cluster.zones):
        if known and zone not in known:
            need = f"one of {', '.join(known)}"
            fix = "use one of these, or update the catalog with `penstock catalog refresh`"
            yield ("spec", "network", "zones", index), ZoneUnknown(given=zone, need=need, fix=fix)
