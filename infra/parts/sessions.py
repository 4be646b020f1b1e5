"""Sessions of an environment: jobs that share a driver and its executors."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from penstock.infra.parts.part import MemoryMib, Millicores, Part
from penstock.jobs.spec import Name


def _each_once(jobs: list[str]) -> list[str]:
    twice = sorted({job for job in jobs if jobs.count(job) > 1})
    if twice:
        raise ValueError(f"each job once; duplicate: {', '.join(twice)}")
    return jobs


class SessionDriver(Part):
    """The driver of a session, in place of the sum of its jobs' drivers: with room for jobs to come, one more restarts nothing.

    Args:
        cores: CPU request.
        memory: of the pod.
    """

    cores: Annotated[Millicores, Field(ge=1)]
    memory: Annotated[MemoryMib, Field(ge=1)]


class Session(Part):
    """A session.

    Args:
        name: of its namespace, driver and role; no job has it.
        jobs: names of the environment's jobs that run in it, at least one.
        driver: of the session; None: the sum of its jobs' drivers.
    """

    name: Name
    jobs: Annotated[list[Name], Field(min_length=1), AfterValidator(_each_once)]
    driver: SessionDriver | None = None
