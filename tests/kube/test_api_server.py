"""The API server on this machine: what it lets in, and that nothing of it is left."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from kubernetes.client import ApiClient, Configuration

from penstock.scripts.kube import binaries
from penstock.scripts.kube.api_server import ApiServer
from penstock.scripts.kube.certificates import Authority
from penstock.scripts.kube.errors import ServerDied, ServerNotReady
from penstock.scripts.layout import ROOT
from tests.kube.evidence import wait_for
from tests.kube.objects import Objects, Refused


def test_the_api_is_of_the_version_that_is_pinned(objects: Objects) -> None:
    assert objects.read("/version")["gitVersion"] == binaries.KUBERNETES


def test_helm_is_of_the_version_that_is_pinned(helm: Path) -> None:
    said = subprocess.run([helm, "version", "--short"], capture_output=True, text=True, timeout=60, check=True).stdout
    assert said.startswith(binaries.HELM_VERSION)


def test_who_shows_no_certificate_may_do_nothing(kube: ApiServer) -> None:
    nobody = Configuration(host=kube.url)
    nobody.ssl_ca_cert = str(kube.ca)
    with ApiClient(nobody) as client, pytest.raises(Refused, match="system:anonymous") as caught:
        Objects(client).read("/api/v1/namespaces")
    assert caught.value.status == 403


def test_a_certificate_of_another_authority_is_rejected(kube: ApiServer, tmp_path: Path) -> None:
    pair = Authority(tmp_path).client("admin", ["system:masters"])
    stranger = Configuration(host=kube.url)
    stranger.ssl_ca_cert, stranger.cert_file, stranger.key_file = str(kube.ca), str(pair.certificate), str(pair.key)
    with ApiClient(stranger) as client, pytest.raises(Refused) as caught:
        Objects(client).read("/api/v1/namespaces")
    assert caught.value.status == 401


def test_the_keys_are_for_this_user_alone(kube: ApiServer) -> None:
    for file in (kube.ca.parent, *kube.ca.parent.iterdir()):
        assert file.stat().st_mode & 0o077 == 0, file


def test_nothing_is_left_of_a_server_that_was_killed_with_its_process(kube: ApiServer, tmp_path: Path) -> None:
    script = f"""
import os, signal, sys
from pathlib import Path
from penstock.scripts.kube.api_server import ApiServer
server = ApiServer(folder=Path({str(tmp_path / "server")!r}), logs=Path({str(tmp_path)!r})).start()
print(*server.pids, server.url.rpartition(":")[2], flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", script]
    with subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        etcd, server, port = (int(word) for word in process.stdout.readline().split())
        for pid in (etcd, server):
            assert running(pid)
        # A process descriptor becomes readable when its process has ended.
        ends = [os.pidfd_open(pid) for pid in (etcd, server)]
        process.kill()
    for end in ends:
        assert select.select([end], [], [], 60)[0], "it still runs"
        os.close(end)
    assert not listens(port)
    wait_for(lambda: not (tmp_path / "server").exists())


def test_an_etcd_that_does_not_start_is_an_error_with_its_words(kube: ApiServer, tmp_path: Path) -> None:
    folder = tmp_path / "server"
    folder.mkdir()
    (folder / "etcd").write_text("a file where its data should go")
    with pytest.raises(ServerDied, match="etcd exited with code"):
        ApiServer(folder=folder, logs=tmp_path).start()
    assert not folder.exists()


def test_a_server_is_stopped_at_its_time_limit(kube: ApiServer, tmp_path: Path) -> None:
    server = ApiServer(folder=tmp_path / "server", logs=tmp_path, start_limit_s=0)
    with pytest.raises(ServerNotReady, match="within 0 s"):
        server.start()
    assert not any(running(pid) for pid in server.pids)
    assert not (tmp_path / "server").exists()


def running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
