"""The charts of the production environment: rendered by Helm, released into a real API, and released again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.scripts.kube.api_server import ApiServer
from tests.kube.charts import Release, attempted, named, ran, templated
from tests.kube.objects import Objects, Refused

KINDS = {
    "StatefulSet",
    "DaemonSet",
    "NodePool",
    "EC2NodeClass",
    "NetworkPolicy",
    "ResourceQuota",
    "Role",
    "RoleBinding",
    "Service",
    "ConfigMap",
}


def test_every_charts_stack_has_releases(charts: list[Release]) -> None:
    assert {"node-pools", "job-user-credit", "job-flights", "fluent-bit", "prometheus"} <= {release.name for release in charts}
    assert {manifest["kind"] for release in charts for manifest in release.manifests} >= KINDS


def test_helm_lint_has_nothing_to_say(helm: Path, charts: list[Release], tmp_path: Path) -> None:
    for release in charts:
        said = ran(helm, "lint", "--strict", release.chart, "--values", release.values_file(tmp_path))
        assert "1 chart(s) linted, 0 chart(s) failed" in said


def test_what_helm_renders_is_what_was_put_in(helm: Path, charts: list[Release], tmp_path: Path) -> None:
    for release in charts:
        assert named(templated(helm, release, tmp_path)) == named(release.given)


def test_braces_in_a_manifest_are_text_to_helm(helm: Path, charts: list[Release], tmp_path: Path) -> None:
    texts = {"template": "{{ .Values.manifests }}", "end": "{{- end }}", "expression": "${HOME} %{if}", "lines": "a: 1\n---\nb: 'yes'\n"}
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "braces"}, "data": texts}
    release = Release("braces", "default", charts[0].chart, json.dumps({"manifests": [manifest]}))
    assert templated(helm, release, tmp_path) == [manifest]


def test_a_value_that_is_no_manifest_is_refused_by_the_charts_schema(helm: Path, charts: list[Release], tmp_path: Path) -> None:
    release = Release("nameless", "default", charts[0].chart, json.dumps({"manifests": [{"apiVersion": "v1", "kind": "Pod"}]}))
    done = attempted(helm, "template", release.name, release.chart, "--values", release.values_file(tmp_path))
    assert done.returncode != 0
    assert "metadata" in done.stderr


def test_all_of_a_release_is_in_the_api(released: list[Release], chart_objects: Objects) -> None:
    for release in released:
        for manifest in release.manifests:
            assert chart_objects.get(manifest)["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"


def test_no_manifest_has_a_field_that_the_api_does_not_know(released: list[Release], chart_objects: Objects) -> None:
    for release in released:
        for manifest in release.given:
            chart_objects.apply(manifest, dry_run=True)


def test_a_second_release_changes_no_object(
    released: list[Release], chart_objects: Objects, chart_kube: ApiServer, helm: Path, tmp_path: Path
) -> None:
    before = versions(released, chart_objects)
    for release in released:
        upgrade(helm, chart_kube, release, tmp_path)
    assert versions(released, chart_objects) == before


def test_helm_alone_would_let_a_mistyped_field_pass(
    objects: Objects, kube: ApiServer, helm: Path, charts: list[Release], tmp_path: Path
) -> None:
    metadata = {"name": "mistyped", "namespace": "default"}
    spec = {"selector": {"app": "a"}, "ports": [{"port": 80}], "clusterIp": "None"}
    manifest = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
    with pytest.raises(Refused, match="clusterIp"):
        objects.apply(manifest, dry_run=True)
    upgrade(helm, kube, Release("mistyped", "default", charts[0].chart, json.dumps({"manifests": [manifest]})), tmp_path)
    assert "clusterIp" not in objects.get(manifest)["spec"]
    objects.delete(manifest)


def test_helm_uninstalls_a_release(objects: Objects, kube: ApiServer, helm: Path, charts: list[Release], tmp_path: Path) -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "short-lived", "namespace": "default"}, "data": {"a": "b"}}
    release = Release("short-lived", "default", charts[0].chart, json.dumps({"manifests": [manifest]}))
    upgrade(helm, kube, release, tmp_path)
    assert objects.get(manifest)["data"] == {"a": "b"}
    ran(helm, "uninstall", release.name, "--namespace", release.namespace, "--kubeconfig", kube.kubeconfig)
    with pytest.raises(Refused, match="not found"):
        objects.get(manifest)


def versions(releases: list[Release], objects: Objects) -> dict[tuple[str, str, str], str]:
    """The version that the API has of each object; it is another one after any change."""
    manifests = [manifest for release in releases for manifest in release.manifests]
    return {key: objects.get(manifest)["metadata"]["resourceVersion"] for key, manifest in named(manifests).items()}


def upgrade(helm: Path, kube: ApiServer, release: Release, folder: Path) -> None:
    """Releases it, as the stack does, but waits for no pod, and so not for its hooks either."""
    options = ("--no-hooks", "--namespace", release.namespace, "--values", release.values_file(folder), "--kubeconfig", kube.kubeconfig)
    ran(helm, "upgrade", "--install", release.name, release.chart, *options)
