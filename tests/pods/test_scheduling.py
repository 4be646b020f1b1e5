"""Where Kubernetes' own scheduler puts executors that are spread, while nodes become ready one after another as on a first start.

The nodes are objects that no kubelet stands behind: the scheduler looks at nothing else of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest
from kubernetes import config

from penstock.infra.manifests.deployed_job import DeployedJob
from penstock.infra.manifests.driver_pod import resources
from penstock.infra.manifests.executor_pod_template import executor_pod_template
from penstock.infra.manifests.job import foundation
from penstock.infra.manifests.upgrade_check import requested
from penstock.scripts.kube import binaries
from penstock.scripts.kube.api_server import ApiServer
from penstock.scripts.kube.cluster.namespaces import environment
from penstock.scripts.process.supervised import SupervisedProcess
from penstock.sizing.errors import ToolMissing
from penstock.sizing.executor_spread import ExecutorSpread
from tests.kube.deployed import count, user_credit
from tests.kube.fixtures import serving
from tests.kube.objects import Object, Objects

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
EXECUTORS = 6
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
# Room for all executors on each.
ROOM = {"cpu": "64", "memory": "512Gi", "pods": "110", "ephemeral-storage": "500Gi"}
POD: Object = {"apiVersion": "v1", "kind": "Pod"}


@pytest.fixture(scope="module")
def own_kube(tmp_path_factory: pytest.TempPathFactory, tell: Callable[[str], None]) -> Iterator[ApiServer]:
    """An API server that no other test uses, with a scheduler."""
    folder = tmp_path_factory.mktemp("scheduling")
    try:
        program = binaries.built(binaries.SCHEDULER, tell)
    except ToolMissing as error:
        pytest.skip(error.render())
    for server in serving(folder, tell):
        access = server.write_kubeconfig(folder / "scheduler.kubeconfig", "system:kube-scheduler", [])
        flags = (f"--kubeconfig={access}", "--leader-elect=false", "--secure-port=0")
        scheduler = SupervisedProcess([program, *flags], env=environment(), log=folder / "scheduler.log", grace_s=5).start()
        yield server
        scheduler.stop()


@pytest.fixture
def objects(own_kube: ApiServer) -> Iterator[Objects]:
    """The objects of that API; its nodes are those of one test."""
    with config.new_client_from_config(config_file=str(own_kube.kubeconfig)) as api:
        made = Objects(api)
        yield made
        for node in made.read("/api/v1/nodes")["items"]:
            made.delete({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node["metadata"]["name"]}})


def job_of(name: str, spread: ExecutorSpread) -> DeployedJob:
    job = user_credit("127.0.0.1:9092", name=name)
    executor = job.plan.pods.executor.model_copy(update={"count": EXECUTORS})
    pods = job.plan.pods.model_copy(update={"executor": executor, "executor_spread": spread})
    return replace(job, plan=job.plan.model_copy(update={"pods": pods}), zones=len(ZONES))


def start(objects: Objects, job: DeployedJob, *, with_min_domains: bool = True) -> Object:
    """Creates the job's executors as Spark does; one of them without its name, to look for all."""
    for manifest in foundation(job, requested(job)):
        objects.apply(manifest)
        if manifest["kind"] == "ResourceQuota":
            count(objects, manifest)
    template = executor_pod_template(job)
    (container,) = template["spec"]["containers"]
    container |= {"image": job.image, "resources": resources(job.plan.pods.executor)}
    template["spec"]["serviceAccountName"] = job.service_account("executor")
    for constraint in template["spec"]["topologySpreadConstraints"]:
        if not with_min_domains:
            del constraint["minDomains"]
    for number in range(EXECUTORS):
        metadata = {**template["metadata"], "name": f"exec-{number}", "namespace": job.namespace}
        objects.create({**POD, "metadata": metadata, "spec": template["spec"]})
    return {**POD, "metadata": {"namespace": job.namespace}}


def add_node(objects: Objects, name: str, zone: str) -> None:
    """A node of the executors' pool that is ready: the API taints each new one as if it were not."""
    labels = {HOST: name, ZONE: zone, "penstock.dev/role": "executor"}
    taint = {"key": "penstock.dev/role", "value": "executor", "effect": "NoSchedule"}
    node: Object = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {"taints": [taint]}}
    objects.apply(node)
    objects.set_status(node, {"capacity": ROOM, "allocatable": ROOM})
    objects.apply(node)


def decided(pods: Sequence[Object]) -> bool:
    """Whether the scheduler has looked at each pod."""
    return all(pod["spec"].get("nodeName") or pod.get("status", {}).get("conditions") for pod in pods)


def on_nodes(pods: Sequence[Object]) -> Counter[str]:
    """Node -> pods; of those without one under an empty name."""
    return Counter(pod["spec"].get("nodeName", "") for pod in pods)


@pytest.mark.parametrize("domain", ["nodes", "zones"])
def test_the_first_node_that_is_ready_takes_one_executor_and_would_take_all_without_the_least_number_of_domains(
    objects: Objects, domain: str
) -> None:
    add_node(objects, "first", ZONES[0])
    spread = ExecutorSpread.model_validate({domain: "required"})
    executors = start(objects, job_of(f"one-{domain}", spread))
    assert on_nodes(objects.wait_for(executors, "", decided)) == {"first": 1, "": EXECUTORS - 1}
    executors = start(objects, job_of(f"all-{domain}", spread), with_min_domains=False)
    assert on_nodes(objects.wait_for(executors, "", decided)) == {"first": EXECUTORS}


def test_each_executor_gets_a_node_of_its_own_as_they_become_ready(objects: Objects) -> None:
    executors = start(objects, job_of("nodes", ExecutorSpread(nodes="required")))
    for number in range(EXECUTORS):
        add_node(objects, f"node-{number}", ZONES[0])
    placed = objects.wait_for(executors, "", lambda pods: not on_nodes(pods)[""])
    assert on_nodes(placed) == {f"node-{number}": 1 for number in range(EXECUTORS)}


def test_each_zone_gets_as_many_executors_once_it_has_a_node(objects: Objects) -> None:
    executors = start(objects, job_of("zones", ExecutorSpread(zones="required")))
    for zone in ZONES[:2]:
        add_node(objects, zone, zone)
    # One in each of them, until the third has a node.
    placed = objects.wait_for(executors, "", lambda pods: on_nodes(pods)[""] <= EXECUTORS - 2)
    assert on_nodes(placed) == {ZONES[0]: 1, ZONES[1]: 1, "": EXECUTORS - 2}
    add_node(objects, ZONES[2], ZONES[2])
    placed = objects.wait_for(executors, "", lambda pods: not on_nodes(pods)[""])
    assert on_nodes(placed) == dict.fromkeys(ZONES, EXECUTORS // len(ZONES))


def test_preferred_executors_share_the_only_node(objects: Objects) -> None:
    add_node(objects, "only", ZONES[0])
    executors = start(objects, job_of("preferred", ExecutorSpread(nodes="preferred", zones="preferred")))
    assert on_nodes(objects.wait_for(executors, "", lambda pods: not on_nodes(pods)[""])) == {"only": EXECUTORS}
