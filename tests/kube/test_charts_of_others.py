"""Karpenter's charts in a mirror: a real registry, into which helm pushes them; and one that wants a login before it."""

from __future__ import annotations

import argparse
import base64
import json
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError

import pytest

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.infra.image_lock import FILE, read
from penstock.scripts.cli import deploy, image
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.kube.image_registry import ImageRegistry
from penstock.scripts.provisioning import charts, cloud, oci_registry
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.provisioning.errors import ChartDiffers, NotInRegistry, RegistryNotReached, RegistryRefuses
from penstock.sizing.errors import Faults, PenstockError, ToolMissing

NAMES = ("karpenter-crd", "karpenter")
USER, PASSWORD, TOKEN = "AWS", "secret", "a-token"
# The account of the emulated AWS.
ACCOUNT = "000000000000"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory, tell: Callable[[str], None]) -> Iterator[str]:
    """Its address."""
    try:
        with ImageRegistry(tmp_path_factory.mktemp("registry") / "images", "127.0.0.1", tell) as served:
            yield served.address
    except ToolMissing as error:
        pytest.skip(error.render())


@dataclass(frozen=True)
class Desk:
    """A folder in which `penstock` runs, with Helm's settings in it."""

    folder: Path
    helm: Path
    registry: str

    def environment(self, prefix: str, host: str | None = None) -> Environment:
        """The production environment with a mirror below a prefix that each test has for itself."""
        return load("production").with_spec(mirrors={"public.ecr.aws": f"{host or self.registry}/{prefix}"})

    def push(self, prefix: str, name: str, description: str = "") -> None:
        chart = self.folder / prefix / name
        chart.mkdir(parents=True, exist_ok=True)
        (chart / "Chart.yaml").write_text(f"apiVersion: v2\nname: {name}\nversion: 1.14.1\ndescription: of a test {description}\n")
        self.run("package", str(chart), "--destination", str(chart.parent))
        self.run("push", str(chart.parent / f"{name}-1.14.1.tgz"), f"oci://{self.registry}/{prefix}/karpenter", "--plain-http")

    def run(self, *arguments: str) -> str:
        return subprocess.run([self.helm, *arguments], check=True, capture_output=True, text=True, timeout=120).stdout


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, helm: Path, registry: str) -> Desk:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("XDG_CONFIG_HOME", "DOCKER_CONFIG", "HELM_CONFIG_HOME", "HELM_REGISTRY_CONFIG", "HELM_REGISTRY_CONFIG_PATH"):
        monkeypatch.delenv(variable, raising=False)
    return Desk(tmp_path, helm, registry)


def _errors(environment: Environment) -> list[PenstockError]:
    with pytest.raises((PenstockError, Faults)) as raised:
        charts.check(environment)
    return list(raised.value.errors)


def _lock(environment: Environment, folder: Path) -> int:
    file = folder / "environment.yaml"
    file.write_text(environment.text())
    parser = argparse.ArgumentParser()
    image.add_arguments(parser)
    return image.run(parser.parse_args(["lock", "--environment", str(file)]))


def test_each_chart_that_a_mirror_lacks_is_named_with_how_to_copy_it(desk: Desk) -> None:
    errors = _errors(desk.environment("empty"))
    assert [(error.code, type(error)) for error in errors] == [("DEP-057", NotInRegistry)] * 2
    assert [error.given for error in errors] == ["not in the registry"] * 2
    for error, name in zip(errors, NAMES, strict=True):
        assert f"helm pull oci://public.ecr.aws/karpenter/{name} --version 1.14.1" in error.fix
        assert f"helm push {name}-1.14.1.tgz oci://{desk.registry}/empty/karpenter" in error.fix


def test_a_chart_of_a_mirror_is_taken_until_it_differs_from_what_the_repository_has_locked(desk: Desk) -> None:
    for name in NAMES:
        desk.push("others", name)
    environment = desk.environment("others")
    pulled = [f"{desk.registry}/others/karpenter/{name}:1.14.1" for name in NAMES]
    assert charts.check(environment) == pulled
    entries = {f"public.ecr.aws/karpenter/{name}:1.14.1": {"digest": oci_registry.digest(pulled[at])} for at, name in enumerate(NAMES)}
    (desk.folder / FILE).write_text(json.dumps({"charts": entries}))
    assert charts.check(environment) == pulled
    desk.push("others", "karpenter", "changed")
    (error,) = _errors(environment)
    assert (error.code, type(error), error.path) == ("DEP-060", ChartDiffers, pulled[1])
    assert "penstock image lock" in error.fix


def test_the_digest_is_the_one_that_helm_says(desk: Desk) -> None:
    desk.push("said", "karpenter")
    pulled = subprocess.run(
        [desk.helm, "pull", f"oci://{desk.registry}/said/karpenter/karpenter", "--version", "1.14.1", "--plain-http"],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=desk.folder,
    )
    digest = oci_registry.digest(f"{desk.registry}/said/karpenter/karpenter:1.14.1")
    assert digest is not None and digest in pulled.stdout + pulled.stderr


def test_an_emulated_environment_asks_no_registry(desk: Desk) -> None:
    assert charts.check(desk.environment("empty").at("http://127.0.0.1:1")) == []


def test_a_registry_that_does_not_answer_is_named(desk: Desk) -> None:
    (error, _) = _errors(desk.environment("empty", "127.0.0.1:1"))
    assert (error.code, type(error)) == ("DEP-059", RegistryNotReached)


def test_the_lock_of_a_repository_has_what_the_registry_says(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    for name in NAMES:
        desk.push("locked", name)
    # The images are artifacts as well: what is locked is a tag's manifest.
    mirror = f"{desk.registry}/locked"
    for image_name, tag in (("karpenter/controller", "1.14.1"), ("fluent/fluent-bit", "4.2.3"), ("prometheus/prometheus", "v3.13.5")):
        _copy(desk.registry, "locked/karpenter/karpenter:1.14.1", f"locked/{image_name}:{tag}")
    mirrors = dict.fromkeys(("public.ecr.aws", "cr.fluentbit.io", "quay.io"), mirror)
    environment = load("production").with_spec(mirrors=mirrors)
    assert _lock(environment, desk.folder) == 0
    written = read(desk.folder / FILE)
    assert written.images["quay.io/prometheus/prometheus:v3.13.5"].digest == oci_registry.digest(f"{mirror}/prometheus/prometheus:v3.13.5")
    assert "quay.io/prometheus/prometheus:v3.13.5@sha256:" in capsys.readouterr().out
    assert len(charts.check(environment)) == 2


def test_an_image_that_a_mirror_lacks_is_named_by_the_lock(desk: Desk) -> None:
    with pytest.raises(NotInRegistry) as raised:
        _lock(desk.environment("empty"), desk.folder)
    assert raised.value.path == f"{desk.registry}/empty/karpenter/karpenter-crd:1.14.1"
    assert not (desk.folder / FILE).exists()


def _copy(registry: str, source: str, target: str) -> None:
    """A manifest under another name in the same registry, with what it names."""
    path, _, tag = source.rpartition(":")
    with urllib.request.urlopen(f"http://{registry}/v2/{path}/manifests/{tag}", timeout=60) as answer:
        content, kind = answer.read(), answer.headers["Content-Type"]
    manifest = json.loads(content)
    to, _, to_tag = target.rpartition(":")
    for blob in (manifest["config"], *manifest["layers"]):
        query = f"?mount={blob['digest']}&from={path}"
        urllib.request.urlopen(
            urllib.request.Request(f"http://{registry}/v2/{to}/blobs/uploads/{query}", method="POST"), timeout=60
        ).close()
    request = urllib.request.Request(
        f"http://{registry}/v2/{to}/manifests/{to_tag}", data=content, method="PUT", headers={"Content-Type": kind}
    )
    urllib.request.urlopen(request, timeout=60).close()


class _Guard(BaseHTTPRequestHandler):
    """What stands before a registry and wants a login: as ECR does, or with a token of a service, as public registries do."""

    registry = ""
    bearer = False
    basic = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

    def do_GET(self) -> None:
        here = f"http://{self.headers['Host']}"
        given = self.headers.get("Authorization")
        if self.path.startswith("/token"):
            self._answer(200 if given == self.basic else 401, json.dumps({"token": TOKEN}).encode())
        elif given == (f"Bearer {TOKEN}" if self.bearer else self.basic):
            self._hand_on()
        else:
            token = f'Bearer realm="{here}/token",service="{here}",scope="repository:x:pull"'
            self._answer(401, b"", token if self.bearer else 'Basic realm="here"')

    def _hand_on(self) -> None:
        request = urllib.request.Request(f"http://{self.registry}{self.path}", headers={"Accept": self.headers["Accept"]})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                self._answer(answer.status, answer.read())
        except HTTPError as error:
            with error:
                self._answer(error.code, b"")

    def _answer(self, status: int, content: bytes, challenge: str | None = None) -> None:
        self.send_response(status)
        if challenge:
            self.send_header("WWW-Authenticate", challenge)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""


@pytest.fixture(params=[False, True], ids=["basic", "bearer"])
def guarded(request: pytest.FixtureRequest, registry: str) -> Iterator[str]:
    """Its address."""
    guard = type("Guard", (_Guard,), {"registry": registry, "bearer": request.param})
    server = ThreadingHTTPServer(("127.0.0.1", 0), guard)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_login_that_is_missing_or_wrong_is_asked_for_and_helms_own_is_used(desk: Desk, guarded: str) -> None:
    environment = desk.environment("empty", guarded)
    assert [type(error) for error in _errors(environment)] == [RegistryRefuses] * 2
    file = desk.folder / ".config/helm/registry/config.json"
    file.parent.mkdir(parents=True)
    for password, kind in (("wrong", RegistryRefuses), (PASSWORD, NotInRegistry)):
        login = base64.b64encode(f"{USER}:{password}".encode()).decode()
        file.write_text(json.dumps({"auths": {guarded: {"auth": login}}}))
        errors = _errors(environment)
        assert [type(error) for error in errors] == [kind] * 2
    assert "helm push" in errors[0].fix


def test_a_login_of_docker_and_of_a_credential_helper_is_used(desk: Desk, guarded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    helper = desk.folder / "bin/docker-credential-test"
    helper.parent.mkdir()
    helper.write_text(f'#!/bin/sh\nread -r host\n[ "$host" = "{guarded}" ] && echo \'{{"Username": "{USER}", "Secret": "{PASSWORD}"}}\'\n')
    helper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{helper.parent}:/usr/bin:/bin")
    file = desk.folder / ".docker/config.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"credHelpers": {guarded: "test"}}))
    assert {type(error) for error in _errors(desk.environment("empty", guarded))} == {NotInRegistry}


def test_the_fix_for_ecr_is_its_login() -> None:
    host = "111122223333.dkr.ecr.eu-west-1.amazonaws.com"
    error = oci_registry._refused(f"{host}/a:1", host, oci_registry._Answered(401, "Unauthorized"))
    assert error.fix == f"aws ecr get-login-password --region eu-west-1 | helm registry login --username AWS --password-stdin {host}"


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An emulated AWS that stands for AWS itself: the environment names no endpoint."""
    with EmulatedAws(log=tmp_path / "aws.log") as aws:
        monkeypatch.setenv("AWS_ENDPOINT_URL", aws.endpoint)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCOUNT)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "emulated")
        yield


@pytest.mark.usefixtures("account")
def test_a_deploy_says_so_before_anything_is_planned_and_doctor_too(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    environment = desk.environment("empty").with_spec(state=None, account=ACCOUNT)
    file = desk.folder / "environment.yaml"
    file.write_text(environment.with_spec(jobs=[]).text())
    parser = argparse.ArgumentParser()
    deploy.add_arguments(parser)
    with pytest.raises(Faults) as raised:
        deploy.run(parser.parse_args([str(file), "--yes", "--out", str(desk.folder / "out")]))
    assert {error.code for error in raised.value.errors} == {"DEP-057"}
    assert not (desk.folder / "out").exists()
    (finding,) = [one for one in cloud.look(AwsAccess(environment.with_spec(jobs=[]))) if one.name == "charts"]
    assert (finding.state, finding.said[:7]) == ("missing", "DEP-057")
    assert "helm push" in finding.fix
