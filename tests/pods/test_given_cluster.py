"""A cluster that a kubeconfig names, as a user has one: served by the developers' command in a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from penstock.scripts.kube import binaries
from penstock.scripts.kube.api_server import ApiServer
from penstock.scripts.kube.cluster import sandbox_image
from penstock.scripts.kube.cluster.requirements import refuse_unsupported
from penstock.scripts.kube.errors import KubeconfigUnusable
from penstock.scripts.layout import ROOT
from penstock.sizing.errors import ToolMissing
from tests.kube.fixtures import kube
from tests.pods import cluster_under_test
from tests.pods.cluster_under_test import HTTPS
from tests.pods.test_cluster import pod
from tests.pods.test_leftovers import leftovers

__all__ = ["kube"]

LIMIT_S = 120
# As kind has it.
API_PORT = 6443


@dataclass(frozen=True)
class Served:
    """A cluster that runs in another process.

    Args:
        kubeconfig: of an administrator.
        host: the address at which its pods reach this machine.
        registry: ``host:port`` of a registry that its nodes pull from.
    """

    kubeconfig: Path
    host: str
    registry: str


@pytest.fixture(scope="module")
def served(tell: Callable[[str], None]) -> Iterator[Served]:
    """A served cluster; Ctrl-C ends it, and it leaves nothing."""
    try:
        refuse_unsupported()
        for program in (*binaries.PROGRAMS, *binaries.CLUSTER_PROGRAMS, binaries.CRANE):
            binaries.built(program, tell)
    except ToolMissing as error:
        pytest.skip(error.render())
    command = [sys.executable, "-m", "penstock.scripts.kube", "--serve", "--nodes", f"--api-port={API_PORT}"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            lines = (line.removeprefix("export ").strip().partition("=") for line in process.stdout if line.startswith("export "))
            said = {name: value for name, _, value in (next(lines) for _ in range(3))}
            kubeconfig = Path(said["KUBECONFIG"])
            yield Served(kubeconfig, said["PENSTOCK_PODS_HOST"], said["REGISTRY"])
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(LIMIT_S) == 0
    # <folder>/cluster/control-plane/api/kubeconfig
    assert leftovers(kubeconfig.parents[3]) == []


@pytest.fixture
def usable(served: Served, monkeypatch: pytest.MonkeyPatch) -> Served:
    """The served cluster, and this machine's address for its pods."""
    monkeypatch.setenv(cluster_under_test.HOST, served.host)
    return served


def test_a_pod_runs_an_image_that_was_pushed_to_the_registry(usable: Served, tmp_path: Path) -> None:
    archive = sandbox_image.write_archive(binaries.built(binaries.PAUSE), tmp_path / "image.tar")
    image = f"{usable.registry}/team/pause:1"
    subprocess.run([binaries.built(binaries.CRANE), "push", archive, image], check=True, capture_output=True, timeout=LIMIT_S)
    cluster = cluster_under_test.of_kubeconfig(usable.kubeconfig)
    asked = pod("pulled")
    asked["spec"]["containers"][0]["image"] = image
    cluster.objects.create(asked)
    (running,) = cluster.objects.wait_for(asked, "app=pulled", lambda all_: [one["status"]["phase"] for one in all_] == ["Running"])
    cluster.objects.delete(asked)
    assert running["status"]["containerStatuses"][0]["imageID"].startswith(f"{usable.registry}/team/pause@sha256:")


def test_the_port_of_its_api_is_found(usable: Served) -> None:
    assert cluster_under_test.of_kubeconfig(usable.kubeconfig).api_ports == {API_PORT}


def test_a_test_that_takes_nodes_away_is_skipped(usable: Served) -> None:
    cluster = cluster_under_test.of_kubeconfig(usable.kubeconfig)
    with pytest.raises(pytest.skip.Exception, match="it takes nodes away, which is not done to a cluster of the user's"):
        _ = cluster.nodes
    with pytest.raises(pytest.skip.Exception, match="it stops the API server"):
        _ = cluster.api_server


def unusable(file: Path) -> KubeconfigUnusable:
    with pytest.raises(KubeconfigUnusable) as raised:
        cluster_under_test.of_kubeconfig(file)
    return raised.value


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address of this machine; no pods ask it anything."""
    monkeypatch.setenv(cluster_under_test.HOST, "127.0.0.1")


@pytest.mark.usefixtures("host")
def test_a_user_who_may_not_create_namespaces_is_refused(kube: ApiServer, tmp_path: Path) -> None:
    error = unusable(kube.write_kubeconfig(tmp_path / "kubeconfig", "nobody", []))
    assert error.given == (
        "not allowed: create namespaces, delete namespaces, create pods, create statefulsets, create roles, create networkpolicies"
    )


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(("listens", "said"), [(False, "Connection refused"), (True, "timed out")])
def test_a_cluster_that_does_not_answer_is_refused(
    kube: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listens: bool, said: str
) -> None:
    monkeypatch.setattr(cluster_under_test, "ANSWER_S", 0.5)
    content = yaml.safe_load(kube.kubeconfig.read_text())
    file = tmp_path / "kubeconfig"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        content["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{silent.getsockname()[1]}"
        file.write_text(yaml.safe_dump(content))
        if not listens:
            silent.close()
        error = unusable(file)
    assert (error.path, error.need) == (str(file), "a cluster that answers")
    assert said in str(error.given)


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("content", [None, "", "clusters: []\n", "no: [kubeconfig\n"])
def test_a_file_that_is_no_kubeconfig_is_refused(content: str | None, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    if content is not None:
        file.write_text(content)
    assert unusable(file).path == str(file)


def test_without_the_hosts_address_the_variable_is_named(kube: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(cluster_under_test.HOST, raising=False)
    error = unusable(kube.kubeconfig)
    assert (error.path, error.given) == ("PENSTOCK_PODS_HOST", "not set")


def test_an_address_that_is_not_this_machines_is_refused(kube: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    # Source: RFC 5737: an address for documentation.
    monkeypatch.setenv(cluster_under_test.HOST, "192.0.2.1")
    error = unusable(kube.kubeconfig)
    assert (error.path, error.given) == ("PENSTOCK_PODS_HOST", "192.0.2.1:443: Cannot assign requested address")


@pytest.mark.usefixtures("host")
@pytest.mark.skipif(os.geteuid() != 0, reason="port 443 is root's")
def test_a_port_in_use_is_refused(kube: ApiServer) -> None:
    with socket.create_server(("127.0.0.1", HTTPS)):
        error = unusable(kube.kubeconfig)
    assert (error.path, error.given) == ("PENSTOCK_PODS_HOST", "127.0.0.1:443: Address already in use")


@pytest.mark.parametrize("image", [None, "", "repository/without-a-tag", "registry:5000/without-a-tag"])
def test_an_image_without_a_name_and_a_tag_is_refused(image: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if image is None:
        monkeypatch.delenv(cluster_under_test.IMAGE, raising=False)
    else:
        monkeypatch.setenv(cluster_under_test.IMAGE, image)
    with pytest.raises(KubeconfigUnusable, match="KUBE-027"):
        cluster_under_test.given_image()


def test_a_kubeconfig_that_cannot_be_used_fails_the_tests_instead_of_skipping_them(tmp_path: Path) -> None:
    environment = {**os.environ, "KUBECONFIG": str(tmp_path / "missing"), cluster_under_test.HOST: "127.0.0.1"}
    command = [sys.executable, "-m", "pytest", "-m", "pods", "-n0", "-q", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'inner'}"]
    ran = subprocess.run(
        [*command, "tests/pods/test_jobs.py"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert ran.returncode == 1
    assert "error[KUBE-027]: cannot use the cluster of the kubeconfig" in ran.stdout
