"""The headless service of a driver: its address for executors."""

from __future__ import annotations

from typing import Any

from penstock.infra.manifests.deployed_job import BLOCK_MANAGER_PORT, DRIVER_PORT, UI_PORT, DeployedWorkload

# Names of the ports, in the service and in the driver's container.
PORTS = {"driver-rpc": DRIVER_PORT, "blockmanager": BLOCK_MANAGER_PORT, "spark-ui": UI_PORT}


def driver_service(job: DeployedWorkload) -> dict[str, Any]:
    """The service."""
    ports = [{"name": name, "port": port, "targetPort": port, "protocol": "TCP"} for name, port in PORTS.items()]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": job.driver_name, "namespace": job.namespace, "labels": job.labels("driver")},
        "spec": {
            "clusterIP": "None",
            "selector": job.selector("driver"),
            # Executors resolve the driver before it is ready: it becomes ready only with them.
            "publishNotReadyAddresses": True,
            "ports": ports,
        },
    }
