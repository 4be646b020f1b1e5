"""The plan of a job of an environment, beside what the job does."""

from __future__ import annotations

from penstock.infra.environment import Environment
from penstock.infra.plans import plans
from penstock.sizing.errors import PenstockError
from penstock.sizing.planned import Plan


def plan_of(environment: Environment, job: str) -> Plan | None:
    """The plan of a job; None if there is none, of which penstock size says why: the job runs."""
    try:
        return next(one.plan for one in plans(environment).jobs if one.name == job)
    except PenstockError:
        return None
