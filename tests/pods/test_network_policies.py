"""Network policies of a job: its pods reach what they need and nothing else, and no other pod reaches them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.infra.manifests.deployed_job import BLOCK_MANAGER_PORT, DRIVER_PORT, OBSERVABILITY_NAMESPACE, UI_PORT
from penstock.infra.manifests.driver_pod import CONTAINER
from penstock.scripts.local.environment import LocalEnvironment
from tests.kube.charts import Release
from tests.kube.evidence import wait_for
from tests.kube.objects import Object
from tests.pods import listening_pods, team_job
from tests.pods.cluster_under_test import ClusterUnderTest
from tests.pods.commands import PodContainer
from tests.pods.connections import reached
from tests.pods.forwarding import Forwarding
from tests.pods.job_run import Faults, run_of, run_to_the_end
from tests.pods.listening_pods import listening
from tests.pods.pod_run import ReleasedJob
from tests.pods.team_job import Surroundings, small_spec

Targets = frozenset[str]
STRANGERS = "penstock-tests-strangers"
# Of no policy.
OTHER_PORT = 8080
# A new policy is enforced within a second or two; a busy machine takes longer.
LIMIT_S = 120
_DENY = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "deny", "namespace": STRANGERS},
    "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
}


@dataclass(frozen=True)
class Elsewhere:
    """Servers that are no pods.

    Args:
        needed: what a job's pods need: its brokers, S3, and the API by its name.
        other: one at a port that no policy allows.
    """

    needed: Targets
    other: str

    @property
    def all(self) -> Targets:
        """All of them."""
        return self.needed | {self.other}


@pytest.fixture
def elsewhere(cluster: ClusterUnderTest, local: LocalEnvironment, around: Surroundings) -> Iterator[Elsewhere]:
    """Servers of this machine and the API."""
    with Forwarding(cluster.host, local.aws.port) as other:
        yield Elsewhere(
            Targets((around.brokers, around.aws.removeprefix("http://"), "kubernetes.default.svc:443")), f"{cluster.host}:{other.port}"
        )


@pytest.fixture(scope="module", autouse=True)
def _policies_are_enforced(cluster: ClusterUnderTest, around: Surroundings) -> None:
    """A cluster of the user's may have no controller for them; that of the tests' own has one."""
    if cluster.own is not None:
        return
    pods = [listening(name, STRANGERS, around.image, {}, OTHER_PORT) for name in ("one", "two")]
    with listening_pods.namespace(cluster.objects, STRANGERS), listening_pods.running(cluster.objects, pods) as ips:
        target = f"{ips['two']}:{OTHER_PORT}"
        wait_for(lambda: bool(reached(cluster.kubeconfig, listening_pods.source(pods[0]), [target])), LIMIT_S)
        cluster.objects.apply(_DENY)
        try:
            wait_for(lambda: not reached(cluster.kubeconfig, listening_pods.source(pods[0]), [target]), LIMIT_S)
        except AssertionError:
            pytest.skip("this cluster accepts network policies and does not enforce them")


class StandIns:
    """Pods with the labels of a job's driver and executors and with their ports, and pods of others.

    Args:
        cluster: where they run.
        elsewhere: servers that are no pods.
        pods: all of them.
        ips: name -> address.
    """

    def __init__(self, cluster: ClusterUnderTest, elsewhere: Elsewhere, pods: list[Object], ips: Mapping[str, str]) -> None:
        self._kubeconfig = cluster.kubeconfig
        self._sources = {pod["metadata"]["name"]: listening_pods.source(pod) for pod in pods}
        self._ports = {pod["metadata"]["name"]: listening_pods.ports(pod) for pod in pods}
        self._elsewhere = elsewhere
        self._ips = ips

    @property
    def names(self) -> list[str]:
        """All names."""
        return list(self._sources)

    def at(self, pod: str, *ports: int) -> Targets:
        """Ports of a pod."""
        return Targets(f"{self._ips[pod]}:{port}" for port in ports)

    def others(self, name: str) -> Targets:
        """All that a pod may reach: what is not its own."""
        own = (self.at(pod, *ports) for pod, ports in self._ports.items() if pod != name)
        return self._elsewhere.all.union(*own)

    def reached(self, expected: Mapping[str, Targets]) -> dict[str, Targets]:
        """What each pod reaches: what is expected, or what is so after `LIMIT_S`."""
        last: dict[str, Targets] = {}

        def as_expected() -> bool:
            last.update(zip(self.names, pool.map(self._reached, self.names), strict=True))
            return last == expected

        with ThreadPoolExecutor(len(self.names)) as pool, suppress(AssertionError):
            wait_for(as_expected, LIMIT_S)
        return last

    def _reached(self, name: str) -> Targets:
        return Targets(reached(self._kubeconfig, self._sources[name], self.others(name)))


@contextmanager
def stand_ins(cluster: ClusterUnderTest, elsewhere: Elsewhere, release: Release, image: str) -> Iterator[StandIns]:
    """The stand-ins in the job's namespace and in others', without a policy."""
    (job,) = (one["metadata"] for one in release.manifests if one["kind"] == "Namespace")
    driver, executor = labels_of(release)
    pods = [
        listening("driver", job["name"], image, driver, DRIVER_PORT, BLOCK_MANAGER_PORT, UI_PORT, OTHER_PORT),
        listening("executor-1", job["name"], image, executor, BLOCK_MANAGER_PORT, OTHER_PORT),
        listening("executor-2", job["name"], image, executor, BLOCK_MANAGER_PORT),
        listening("without-labels", job["name"], image, {}, OTHER_PORT),
        listening("impostor", STRANGERS, image, executor, OTHER_PORT),
        listening("prometheus", OBSERVABILITY_NAMESPACE, image, {}, OTHER_PORT),
    ]
    namespaces = {job["name"]: job["labels"], STRANGERS: {}, OBSERVABILITY_NAMESPACE: {}}
    with ExitStack() as held:
        for name, labels in namespaces.items():
            held.enter_context(listening_pods.namespace(cluster.objects, name, labels))
        yield StandIns(cluster, elsewhere, pods, held.enter_context(listening_pods.running(cluster.objects, pods)))


def labels_of(release: Release) -> tuple[dict[str, str], dict[str, str]]:
    """The labels of a release's driver and of its executors."""
    by_kind = {one["kind"]: one for one in release.manifests}
    executor = json.loads(by_kind["ConfigMap"]["data"]["executor.yaml"])
    return by_kind["StatefulSet"]["spec"]["template"]["metadata"]["labels"], executor["metadata"]["labels"]


def test_a_job_reaches_what_it_needs_and_is_reached_by_its_own_pods(
    cluster: ClusterUnderTest, around: Surroundings, elsewhere: Elsewhere, tmp_path: Path
) -> None:
    release = team_job.release(small_spec("flights", tmp_path), around, tmp_path / "release")
    policies = {one["metadata"]["name"]: one for one in release.manifests if one["kind"] == "NetworkPolicy"}
    with stand_ins(cluster, elsewhere, release, around.image) as pods:
        everything = {name: pods.others(name) for name in pods.names}
        assert pods.reached(everything) == everything

        cluster.objects.apply(policies.pop("default-deny"))
        unaffected = {
            "impostor": elsewhere.all | pods.at("prometheus", OTHER_PORT),
            "prometheus": elsewhere.all | pods.at("impostor", OTHER_PORT),
        }
        shut = {**dict.fromkeys(pods.names, Targets()), **unaffected}
        assert pods.reached(shut) == shut

        for policy in policies.values():
            cluster.objects.apply(policy)
        driver = pods.at("driver", DRIVER_PORT, BLOCK_MANAGER_PORT)
        one, two = (pods.at(name, BLOCK_MANAGER_PORT) for name in ("executor-1", "executor-2"))
        allowed = {
            "driver": one | two | elsewhere.needed,
            "executor-1": driver | two | elsewhere.needed,
            "executor-2": driver | one | elsewhere.needed,
            "without-labels": Targets(),
            "impostor": unaffected["impostor"],
            "prometheus": unaffected["prometheus"] | pods.at("driver", UI_PORT),
        }
        assert pods.reached(allowed) == allowed


def test_a_running_job_is_not_reached_by_others_and_reaches_no_other_port(
    cluster: ClusterUnderTest, local: LocalEnvironment, around: Surroundings, elsewhere: Elsewhere, helm: Path, tmp_path: Path
) -> None:
    stranger = listening("stranger", STRANGERS, around.image, {}, OTHER_PORT)
    executors: set[str] = set()
    by_stranger: set[str] = set()
    by_driver: set[str] = set()

    def connections_are_tried(job: ReleasedJob) -> None:
        (driver,) = job.pods("driver")
        executors.update(f"{pod.status.pod_ip}:{BLOCK_MANAGER_PORT}" for pod in job.pods("executor") if pod.status.phase == "Running")
        of_driver = {f"{driver.status.pod_ip}:{port}" for port in (DRIVER_PORT, BLOCK_MANAGER_PORT, UI_PORT)}
        with listening_pods.running(cluster.objects, [stranger]) as ips:
            others = {f"{ips['stranger']}:{OTHER_PORT}", *elsewhere.all}
            by_stranger.update(reached(cluster.kubeconfig, listening_pods.source(stranger), of_driver | executors | elsewhere.all))
            by_driver.update(reached(cluster.kubeconfig, PodContainer(job.namespace, job.driver, CONTAINER), executors | others))

    faults: Faults = {1: connections_are_tried}
    spec = small_spec("flights", tmp_path)
    with listening_pods.namespace(cluster.objects, STRANGERS), run_of(spec, cluster, local, around, helm, tmp_path) as run:
        verdict = run_to_the_end(run, faults)
    assert verdict.compared
    assert not verdict.differences
    assert executors
    assert by_driver == executors | elsewhere.needed
    assert by_stranger == elsewhere.all
