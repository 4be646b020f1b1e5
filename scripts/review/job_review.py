"""What a change means for each job of an environment."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.scripts.operations.job_changes import Change
from penstock.scripts.planning.quantities import Quantity
from penstock.sizing.lint.finding import Finding

Kind = Literal["added", "changed", "gone", "unchanged"]
Outcome = Literal["starts", "ends", "unchanged", "goes on with its state", "begins without its state", "refused"]


class _Said(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)


class JobReview(_Said):
    """What a change means for a job.

    Args:
        job: its name.
        kind: whether the change adds, changes or removes it.
        outcome: what a deploy of the change does with a job that runs as it was before.
        changes: of its spec and of its app.
        needs: quantities of its plan after the change; of one that is gone, before it.
        plan: quantities that differ.
        topics: partitions of topics that differ.
        findings: of lint that were not there before.
        refused: why the change can't be deployed; empty if it can.
        notes: what could not be compared.
    """

    job: str
    kind: Kind
    outcome: Outcome
    needs: dict[str, str]
    changes: tuple[Change, ...] = ()
    plan: tuple[Quantity, ...] = ()
    topics: tuple[Quantity, ...] = ()
    findings: tuple[Finding, ...] = ()
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Review(_Said):
    """What a change means for an environment.

    Args:
        environment: its name.
        base: id of the commit that is compared with.
        fields: of the environment that differ.
        jobs: of it, before the change or after it.
        findings: of lint that were not there before and are of no job.
        violations: why all jobs together can't be deployed, each of which can by itself; empty if they can.
        cost: USD a month of all jobs, without what they share; None if none is known.
        notes: what could not be compared.
    """

    environment: str
    base: str
    fields: tuple[Quantity, ...] = ()
    jobs: tuple[JobReview, ...] = ()
    findings: tuple[Finding, ...] = ()
    violations: tuple[str, ...] = ()
    cost: Quantity | None = None
    notes: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether the change can't be deployed as it is."""
        return (
            bool(self.violations) or any(job.refused for job in self.jobs) or any(finding.severity == "error" for finding in self.findings)
        )
