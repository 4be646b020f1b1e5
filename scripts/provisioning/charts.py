"""The charts of others, before Helm needs them: that they are where the environment pulls them from, and are those that were published."""

from __future__ import annotations

from pathlib import Path

from penstock.infra.environment import Environment
from penstock.infra.image_lock import FILE, locked, read
from penstock.infra.karpenter_charts import Chart, charts
from penstock.scripts.provisioning import oci_registry
from penstock.scripts.provisioning.errors import ChartDiffers, NotInRegistry
from penstock.sizing.errors import PenstockError, raise_all


def check(environment: Environment) -> list[str]:
    """Check each chart; read-only. A pull-through cache fetches a chart that it does not have yet.

    Args:
        environment: the environment.

    Returns:
        The charts, as they are pulled; none of an emulated environment, whose charts are not applied.

    Raises:
        NotInRegistry: DEP-057; several errors are raised as `Faults`.
        RegistryRefuses: DEP-058.
        RegistryNotReached: DEP-059.
        ChartDiffers: DEP-060.
    """
    wanted = charts(environment) if environment.spec.endpoints is None else ()
    faults: list[PenstockError] = []
    for chart in wanted:
        try:
            _check(chart)
        except PenstockError as error:
            faults.extend(environment.locate(one, "spec", "mirrors") if chart.pulled != chart.published else one for one in error.errors)
    if faults:
        raise_all(faults)
    return [chart.pulled for chart in wanted]


def _check(chart: Chart) -> None:
    digest = oci_registry.digest(chart.pulled)
    copy = f"helm pull oci://{chart.source}/{chart.name} --version {chart.version}"
    copy += f" && helm push {chart.name}-{chart.version}.tgz oci://{chart.repository}; then penstock image lock"
    if digest is None:
        fix = copy if chart.pulled != chart.published else "correct spec.eks.karpenterVersion"
        raise NotInRegistry(path=chart.pulled, given="not in the registry", need="the chart at this version, which Helm installs", fix=fix)
    expected = _expected(chart)
    if expected not in (None, digest):
        fix = "find out who has changed it, and copy it again; if it was you, 'penstock image lock' records it"
        raise ChartDiffers(path=chart.pulled, given=digest, need=f"{expected}, as it was published or locked", fix=fix)


def _expected(chart: Chart) -> str | None:
    """The digest that a repository has locked, or, of a chart that comes from its publisher, the shipped one.

    A chart that Helm has copied to a mirror has the same content and, as Helm writes the time of a push to the manifest, another digest.
    """
    lock = read(Path.cwd() / FILE) if chart.pulled != chart.published else locked()
    found = lock.charts.get(chart.published)
    return found.digest if found is not None else None
