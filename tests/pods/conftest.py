"""One cluster, one broker and one emulated AWS for all the tests of the tier."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from kubernetes import config

from penstock.infra.environment_file import load
from penstock.scripts.image.build import built_archive
from penstock.scripts.kube.cluster.pod_cluster import PodCluster
from penstock.scripts.local.environment import LocalEnvironment
from penstock.sizing.errors import ToolMissing
from tests.kube.fixtures import helm, tell
from tests.pods import cluster_under_test
from tests.pods.cluster_under_test import HTTPS, ClusterUnderTest
from tests.pods.forwarding import Forwarding
from tests.pods.team_job import Surroundings

__all__ = ["helm", "tell"]

# The longest test takes some minutes; the first run builds the programs and the image before it.
LIMIT_S = 3600
LABELS = ({"penstock.dev/zone": "a"}, {"penstock.dev/zone": "b"})
# Of each node: a sparse file, of which a test fills what it likes.
DISK_MIB = 32 * 1024


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # One cluster runs on a machine at a time: tests that start their own come before those that share one, which lasts to the end.
    items.sort(key=lambda item: "cluster" in getattr(item, "fixturenames", ()))
    for item in items:
        if not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(LIMIT_S))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory, tell: Callable[[str], None]) -> Iterator[ClusterUnderTest]:
    """The cluster of KUBECONFIG, or one of the tests' own."""
    if given := os.environ.get(cluster_under_test.KUBECONFIG):
        with _given():
            under_test = cluster_under_test.of_kubeconfig(Path(given))
        yield under_test
        return
    try:
        folder = tmp_path_factory.mktemp("cluster")
        with ExitStack() as held:
            own = held.enter_context(PodCluster(folder=folder / "data", logs=folder, labels=LABELS, disk_mib=DISK_MIB, progress=tell))
            client = held.enter_context(config.new_client_from_config(config_file=str(own.kubeconfig)))
            yield cluster_under_test.of_own(own, client)
    except ToolMissing as error:
        pytest.skip(error.render())


@contextmanager
def _given() -> Iterator[None]:
    """What the user has given and can't be used is no reason to skip the tests."""
    try:
        yield
    except ToolMissing as error:
        pytest.fail(error.render(), pytrace=False)


@pytest.fixture(scope="session")
def image(cluster: ClusterUnderTest, tell: Callable[[str], None]) -> str:
    """The jobs' image, which every node has or can pull."""
    if cluster.own is None:
        with _given():
            return cluster_under_test.given_image()
    name, archive = (os.environ.get(variable) for variable in (cluster_under_test.IMAGE, cluster_under_test.ARCHIVE))
    if not (name and archive):
        try:
            built = built_archive(lambda said: tell(f"image: {said}"))
        except ToolMissing as error:
            pytest.skip(error.render())
        name, archive = built.image, str(built.path)
    tell(f"cluster: importing {name} into the nodes")
    cluster.own.import_image(Path(archive))
    return name


@pytest.fixture(scope="session")
def local(cluster: ClusterUnderTest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEnvironment]:
    """The emulated AWS with its buckets, and a broker that pods reach."""
    folder = tmp_path_factory.mktemp("local")
    with LocalEnvironment(load("local"), folder=folder, aws_port=0, kafka_port=0, kafka_host=cluster.host) as environment:
        environment.wait_for_buckets()
        yield environment


@pytest.fixture(scope="session")
def around(cluster: ClusterUnderTest, local: LocalEnvironment, image: str) -> Iterator[Surroundings]:
    """The same, as pods see it."""
    with Forwarding(cluster.host, local.aws.port, at=HTTPS) as aws:
        own = local.aws.environment()
        variables = {name: own[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_EC2_METADATA_DISABLED")}
        yield Surroundings(aws.url, {**variables, "AWS_ENDPOINT_URL": aws.url}, local.kafka.address, image, cluster.api_ports - {HTTPS})
