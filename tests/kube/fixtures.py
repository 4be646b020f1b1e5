"""An API server, helm and the production environment's charts for tests; a folder's conftest takes what it needs from here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest
import yaml
from kubernetes import client, config

from penstock.infra.app import CHARTS
from penstock.infra.environment_file import load
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.kube import binaries
from penstock.scripts.kube.api_server import ApiServer
from penstock.scripts.provisioning.stacks import synthesized
from penstock.sizing.errors import ToolMissing
from tests.infra.manifests.karpenter_crds import CRDS
from tests.kube.charts import Release, ran, releases
from tests.kube.objects import Object, Objects

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@pytest.fixture(scope="session")
def tell(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Says what is being built past pytest's capturing: a first run would be silent for minutes."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    reporter = request.config.pluginmanager.getplugin("terminalreporter")

    def line(text: str) -> None:
        with capture.global_and_fixture_disabled():
            reporter.ensure_newline()
            reporter.write_line(text)

    return line


@pytest.fixture(scope="session")
def kube(tmp_path_factory: pytest.TempPathFactory, tell: Callable[[str], None]) -> Iterator[ApiServer]:
    """A Kubernetes API: `.url`, `.ca`, `.admin` (certificate and key) and `.kubeconfig`."""
    yield from serving(tmp_path_factory.mktemp("kube"), tell)


def serving(folder: Path, tell: Callable[[str], None]) -> Iterator[ApiServer]:
    """A Kubernetes API of its own folder while a fixture lasts; its tests are skipped where it can't be built."""
    server = ApiServer(folder=folder / "server", logs=folder, progress=tell)
    try:
        server.start()
    except ToolMissing as error:
        pytest.skip(error.render())
    yield server
    server.stop()


@pytest.fixture(scope="session")
def api(kube: ApiServer) -> Iterator[client.ApiClient]:
    """A client of that API, for a user who may do everything."""
    with config.new_client_from_config(config_file=str(kube.kubeconfig)) as made:
        yield made


@pytest.fixture(scope="session")
def objects(api: client.ApiClient) -> Objects:
    """The objects of that API, for the same user."""
    return Objects(api)


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Client]:
    """A client of an emulated S3 with the bucket ``checkpoints``."""
    with EmulatedAws(log=tmp_path_factory.mktemp("aws") / "aws.log") as aws:
        made = boto3.client(
            "s3", endpoint_url=aws.endpoint, region_name="us-east-1", aws_access_key_id="1" * 12, aws_secret_access_key="emulated"
        )
        made.create_bucket(Bucket="checkpoints")
        yield made


@pytest.fixture(scope="session")
def crds(objects: Objects) -> list[Object]:
    """The CRDs of Karpenter and of the Spark operator, served by the API."""
    return list(objects.serve(_crds()))


def _crds() -> Iterator[Object]:
    files = sorted(CRDS.glob("*.yaml"))
    if not files:
        pytest.skip(f"the CRDs are not in {CRDS.name}/ beside the checkout")
    yield from (document for file in files for document in yaml.safe_load_all(file.read_text("utf-8")) if document)


@pytest.fixture(scope="session")
def helm(tell: Callable[[str], None]) -> Path:
    """The helm command."""
    try:
        return binaries.built(binaries.HELM, tell)
    except ToolMissing as error:
        pytest.skip(error.render())


@pytest.fixture(scope="session")
def charts(tmp_path_factory: pytest.TempPathFactory) -> list[Release]:
    """The releases of local charts that the production environment has."""
    if shutil.which("node") is None:
        pytest.skip("cdktf needs Node.js, and node is not in PATH")
    return releases(synthesized(load("production"), tmp_path_factory.mktemp("production"), only=CHARTS, base=os.environ))


@pytest.fixture(scope="session")
def chart_kube(tmp_path_factory: pytest.TempPathFactory, tell: Callable[[str], None]) -> Iterator[ApiServer]:
    """The API that the charts are released into: Helm takes over no namespace and no object that other tests have made."""
    yield from serving(tmp_path_factory.mktemp("chart-kube"), tell)


@pytest.fixture(scope="session")
def chart_objects(chart_kube: ApiServer) -> Iterator[Objects]:
    """The objects of that API."""
    with config.new_client_from_config(config_file=str(chart_kube.kubeconfig)) as made:
        yield Objects(made)


@pytest.fixture(scope="session")
def released(
    chart_kube: ApiServer, chart_objects: Objects, helm: Path, charts: list[Release], tmp_path_factory: pytest.TempPathFactory
) -> list[Release]:
    """The releases of ``charts`` in that API."""
    chart_objects.serve(_crds())
    folder = tmp_path_factory.mktemp("values")
    for release in charts:
        values = release.values_file(folder)
        options = ("--namespace", release.namespace, "--values", values, "--kubeconfig", chart_kube.kubeconfig)
        ran(helm, "install", release.name, release.chart, *options)
    return charts
