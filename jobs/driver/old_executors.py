"""Deletes the executors that an earlier container of the driver's pod has left.

Kubernetes deletes executors with the driver's pod, which owns them. A container that restarts keeps its pod, so those of a driver that was
killed stay: most of them end because their driver is gone, one that hangs or cannot be reached does not, and takes the place of a new one.
"""

from __future__ import annotations

import os
import ssl
import sys
from pathlib import Path

from penstock.jobs.configuration.runtime import JOB_LABEL, POD_NAME_VARIABLE
from penstock.jobs.driver.pod import SERVICE_ACCOUNT

# Source: Kubernetes, "Accessing the Kubernetes API from a Pod"; the name does not depend on service links.
API = "https://kubernetes.default.svc"

# Source: Spark 4.3.0, SPARK_ROLE_LABEL and SPARK_POD_EXECUTOR_ROLE of deploy/k8s/Constants.scala.
_ROLE = "spark-role=executor"
_TIMEOUT_S = 10.0


def delete_old_executors(job: str, *, api: str = API, account: Path = SERVICE_ACCOUNT) -> None:
    """Deletes the executors' pods of a job, if this driver runs in a pod. To be called before Spark starts its own.

    A failure is a warning: what old executors still do does not count, since the checkpoint's token has changed.

    Args:
        job: its name.
        api: URL of the Kubernetes API.
        account: folder with the service account's ``token``, ``ca.crt`` and ``namespace``.
    """
    if not os.environ.get(POD_NAME_VARIABLE):
        return
    import httpx

    try:
        deleted = _deleted(f"{_ROLE},{JOB_LABEL}={job}", api, account)
    except (httpx.HTTPError, OSError, ValueError) as error:
        print(f"WARN executors of an earlier container are not deleted: {type(error).__name__}: {error}", file=sys.stderr)
        return
    if deleted:
        print(f"WARN deleted executors of an earlier container: {', '.join(deleted)}", file=sys.stderr)


def _deleted(selector: str, api: str, account: Path) -> list[str]:
    """Deletes the pods that a selector finds in the account's namespace. Returns their names."""
    import httpx

    token, namespace = ((account / name).read_text("utf-8").strip() for name in ("token", "namespace"))
    trusted = ssl.create_default_context(cafile=str(account / "ca.crt"))
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=api, verify=trusted, headers=headers, timeout=_TIMEOUT_S, trust_env=False) as client:
        answer = client.delete(f"/api/v1/namespaces/{namespace}/pods", params={"labelSelector": selector})
        answer.raise_for_status()
        return [pod["metadata"]["name"] for pod in answer.json().get("items", [])]
