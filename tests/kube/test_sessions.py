"""The release of a session, in a real API."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from penstock.infra.app import CHARTS
from penstock.scripts.kube.api_server import ApiServer
from penstock.scripts.provisioning.stacks import synthesized
from tests.infra.sessions_of_jobs import environment_with
from tests.kube.charts import ran, releases
from tests.kube.objects import Objects


def test_a_session_is_released(kube: ApiServer, helm: Path, objects: Objects, tmp_path: Path) -> None:
    if shutil.which("node") is None:
        pytest.skip("cdktf needs Node.js, and node is not in PATH")
    environment = environment_with(tmp_path, [{"name": "shared", "jobs": ["a", "b"]}])
    made = releases(synthesized(environment, tmp_path / "stacks", only=CHARTS, base=os.environ))
    (session,) = [release for release in made if release.name == "job-shared"]
    options = ("--namespace", session.namespace, "--values", session.values_file(tmp_path), "--kubeconfig", kube.kubeconfig)
    ran(helm, "install", session.name, session.chart, *options)
    try:
        for manifest in session.manifests:
            assert objects.get(manifest)["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"
        for manifest in session.given:
            objects.apply(manifest, dry_run=True)
    finally:
        ran(helm, "uninstall", session.name, "--namespace", session.namespace, "--kubeconfig", kube.kubeconfig)
