"""All objects of a session in a cluster."""

from __future__ import annotations

from typing import Any

from penstock.infra.manifests.deployed_session import DeployedSession
from penstock.infra.manifests.driver_pod import DriverProgram, stop_s
from penstock.infra.manifests.driver_stateful_set import driver_stateful_set
from penstock.infra.manifests.job import foundation
from penstock.infra.manifests.rbac import role, role_binding
from penstock.infra.manifests.service import driver_service
from penstock.infra.manifests.session_config_map import session_config_map, session_fingerprint
from penstock.infra.manifests.upgrade_check import requested
from penstock.jobs.configuration.session import REQUESTS_FOLDER, SESSION, requests_config_map


def session_manifests(session: DeployedSession) -> list[dict[str, Any]]:
    """The objects of a session, in an order in which they can be applied one by one.

    Args:
        session: the session.

    Returns:
        As `penstock.infra.manifests.job.job_manifests`, with the files of all its jobs in one ConfigMap.
    """
    driver = driver_stateful_set(session, program_of_session(session))
    own = [role(session), role_binding(session), session_config_map(session), driver_service(session), driver]
    return [*foundation(session, largest_check(session)), *own]


def program_of_session(session: DeployedSession) -> DriverProgram:
    """The program of a session's driver, which follows the changes of its jobs."""
    return DriverProgram(
        module="penstock.jobs.session.runtime",
        configuration=SESSION,
        fingerprint=session_fingerprint(session),
        outside={},
        stop_s=session_stop_s(session),
        optional={requests_config_map(session.name): REQUESTS_FOLDER},
    )


def session_stop_s(session: DeployedSession) -> int:
    """Time that the driver gets to stop, in seconds: that of the job that takes the longest, as they stop at once."""
    return max(stop_s(job) for job in session.jobs)


def largest_check(session: DeployedSession) -> dict[str, int]:
    """Requests of the largest check of its jobs, as Helm runs one after another."""
    checks = [requested(job) for job in session.jobs]
    return {resource: max(check[resource] for check in checks) for resource in checks[0]}
