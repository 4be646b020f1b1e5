"""The specs of jobs as they run in an environment, which may set their parallelism.

Everything that reads a spec for an environment reads it here, so that one number is sized, deployed and compared.
"""

from __future__ import annotations

from pathlib import Path

from penstock.infra.environment import Environment
from penstock.infra.parts.jobs import EnvironmentJob
from penstock.jobs.document import Path_, dotted
from penstock.jobs.spec import SpecFile, load
from penstock.jobs.spec.overriding import overridden
from penstock.jobs.spec.reading import ParallelismOverride


def spec_in(environment: Environment, path: Path) -> SpecFile:
    """Reads a spec as it runs in an environment.

    Args:
        environment: of the job.
        path: of the spec; one that the environment does not list is read as it is.

    Raises:
        PenstockError: SPEC-001 to SPEC-008, SPEC-011, SPEC-014 and SPEC-015; several are raised as `Faults`.
    """
    spec = load(path)
    entry = next((entry for entry in environment.spec.jobs if Path(entry.spec).resolve() == path.resolve()), None)
    if entry is None or entry.parallelism is None:
        return spec
    return overridden(spec, _override(environment, entry, entry.parallelism))


def _override(environment: Environment, entry: EnvironmentJob, value: int) -> ParallelismOverride:
    document = environment.document
    if document is None:
        return ParallelismOverride(value=value)
    # Not by its number: a command may have added or left out jobs.
    listed = enumerate(document.data["spec"]["jobs"])
    folder, own = Path(document.file).parent, Path(entry.spec).resolve()
    number = next((number for number, one in listed if isinstance(one, dict) and (folder / one["spec"]).resolve() == own), None)
    if number is None:
        return ParallelismOverride(value=value)
    path: Path_ = ("spec", "jobs", number, "parallelism")
    return ParallelismOverride(value=value, at=document.place(path), path=dotted(path))
