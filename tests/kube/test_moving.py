"""A driver that moves to another node, against a real API server; what scheduler, controllers and kubelet would do, the tests do."""

from __future__ import annotations

import io
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from kubernetes import client, config
from rich.console import Console

from penstock.scripts.errors import WrongUsage
from penstock.scripts.kube.api_server import ApiServer
from penstock.scripts.operations.moving import Moving, drivers_on, move_all, node_in_use, node_left
from penstock.scripts.operations.node_table import node_lines
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning.errors import DriverNotReady, DriverOnNoNode, JobNotDeployed, KubernetesRefused, NoOtherNode, StillThere
from penstock.scripts.render.screen import Screen
from tests.kube.driver_objects import Job
from tests.kube.objects import Object, Objects

LIMIT_S = 60


class Nodes:
    """Nodes, and drivers on them.

    Args:
        api: client of the cluster's API.
        objects: of that API.
    """

    def __init__(self, api: client.ApiClient, objects: Objects) -> None:
        self.api, self.objects, self.said = api, objects, io.StringIO()

    def node(self, pool: str | None = "drivers") -> str:
        """A node of a pool of Karpenter's, or of none."""
        name = f"n{uuid.uuid4().hex[:8]}"
        labels = {"node.kubernetes.io/instance-type": "m6a.large"} | ({"karpenter.sh/nodepool": pool} if pool else {})
        self.objects.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}})
        return name

    def state(self, node: str) -> tuple[bool, set[str]]:
        """Whether it is cordoned, and the annotations of moves."""
        found = self.objects.get(_node(node))
        marks = {one for one in found["metadata"].get("annotations", {}) if one.startswith("moving.penstock.dev/")}
        return bool(found["spec"].get("unschedulable")), {one.partition("/")[2] for one in marks}

    def job(self, node: str | None) -> Job:
        """A job whose driver is on a node."""
        job = Job(self.objects)
        if node is not None:
            self.place(job.pod, node)
        return job

    def place(self, pod: Object, node: str) -> None:
        """What the scheduler does."""
        metadata = pod["metadata"]
        binding = client.V1Binding(
            metadata=client.V1ObjectMeta(name=metadata["name"]), target=client.V1ObjectReference(api_version="v1", kind="Node", name=node)
        )
        client.CoreV1Api(self.api).create_namespaced_pod_binding(metadata["name"], metadata["namespace"], binding, _preload_content=False)

    def moving(self, job: Job, pod_margin_s: float = LIMIT_S) -> Moving:
        steps = Steps(Console(file=self.said, width=200))
        return Moving(self.api, job.name, steps, lambda: "JOB-001", LIMIT_S, LIMIT_S, pod_margin_s)

    @contextmanager
    def cluster(self, job: Job, then: Callable[[], object]) -> Iterator[None]:
        """Ends the driver's pod when it is to end, and makes another one when it is to start."""

        def controllers() -> None:
            self._until_replicas(job, 0)
            self.objects.delete(job.pod)
            self._until_replicas(job, 1)
            self.objects.apply(job.pod)
            then()

        thread = threading.Thread(target=controllers)
        thread.start()
        yield
        thread.join(LIMIT_S)
        assert not thread.is_alive()

    def runs_on(self, job: Job, node: str) -> Callable[[], None]:
        """The pod is placed on a node, and its query reads."""

        def then() -> None:
            self.place(job.pod, node)
            job.ready(1)

        return then

    def _until_replicas(self, job: Job, count: int) -> None:
        selector = f"penstock.dev/job={job.name}"
        self.objects.wait_for(job.driver, selector, lambda found: found[0]["spec"]["replicas"] == count, LIMIT_S)


@pytest.fixture
def nodes(api: client.ApiClient, objects: Objects) -> Nodes:
    return Nodes(api, objects)


def test_a_driver_moves_and_its_empty_node_stays_cordoned_for_karpenter(nodes: Nodes) -> None:
    old, new = nodes.node(), nodes.node()
    job = nodes.job(old)
    assert node_left(nodes.api, job.name) == old
    with nodes.cluster(job, nodes.runs_on(job, new)):
        assert nodes.moving(job).carry_out(old) == new
    assert (nodes.state(old), nodes.state(new)) == ((True, set()), (False, set()))
    said = nodes.said.getvalue()
    assert f"{job.name} has left {old} and is on {new}" in said and "s old" in said and "Karpenter removes it once it is empty" in said


@pytest.mark.parametrize("pool", ["drivers", None])
def test_a_node_that_others_use_or_that_is_not_karpenters_takes_pods_again(nodes: Nodes, pool: str | None) -> None:
    old, new = nodes.node(pool), nodes.node()
    job, other = nodes.job(old), nodes.job(old if pool else None)
    with nodes.cluster(job, nodes.runs_on(job, new)):
        nodes.moving(job).carry_out(old)
    assert nodes.state(old) == (False, set())
    assert other.replicas() == 1


def test_a_cordon_of_somebody_else_is_left_alone(nodes: Nodes) -> None:
    old, new = nodes.node(None), nodes.node()
    client.CoreV1Api(nodes.api).patch_node(old, {"spec": {"unschedulable": True}})
    job = nodes.job(old)
    with nodes.cluster(job, nodes.runs_on(job, new)):
        nodes.moving(job).carry_out(old)
    assert nodes.state(old) == (True, set())


def test_an_interrupted_move_goes_on_from_the_node_that_it_has_left(nodes: Nodes) -> None:
    old, new = nodes.node(), nodes.node()
    job = nodes.job(old)
    # The pod does not end in time.
    with pytest.raises(StillThere):
        nodes.moving(job, pod_margin_s=0).carry_out(old)
    assert (job.replicas(), nodes.state(old)) == (0, (True, {job.name}))
    assert "the same command goes on" in nodes.said.getvalue()
    nodes.objects.delete(job.pod)
    # No pod says where it was.
    assert node_left(nodes.api, job.name) == old

    def controllers() -> None:
        nodes.objects.wait_for(job.driver, f"penstock.dev/job={job.name}", lambda found: found[0]["spec"]["replicas"] == 1, LIMIT_S)
        nodes.objects.apply(job.pod)
        nodes.runs_on(job, new)()

    thread = threading.Thread(target=controllers)
    thread.start()
    assert nodes.moving(job).carry_out(old) == new
    thread.join(LIMIT_S)
    assert nodes.state(old) == (True, set())


def test_a_driver_that_no_other_node_takes_goes_back(nodes: Nodes) -> None:
    old = nodes.node()
    job = nodes.job(old)
    with nodes.cluster(job, lambda: None), pytest.raises(NoOtherNode) as raised:
        replace(nodes.moving(job), node_limit_s=0).carry_out(old)
    assert (raised.value.code, raised.value.given) == ("DEP-044", f"none within 0 s; {old} takes pods again")
    assert (job.replicas(), nodes.state(old)) == (1, (False, set()))


def test_a_driver_that_does_not_read_on_its_new_node_is_said_and_the_old_one_is_not_held(nodes: Nodes) -> None:
    old, new = nodes.node(), nodes.node()
    job = nodes.job(old)
    with nodes.cluster(job, lambda: nodes.place(job.pod, new)), pytest.raises(DriverNotReady) as raised:
        replace(nodes.moving(job), ready_limit_s=0).carry_out(old)
    assert (raised.value.code, raised.value.given, nodes.state(old)) == ("DEP-018", "JOB-001", (True, set()))


def test_with_detach_nobody_waits_for_the_query(nodes: Nodes) -> None:
    old, new = nodes.node(), nodes.node()
    job = nodes.job(old)
    with nodes.cluster(job, lambda: nodes.place(job.pod, new)):
        assert nodes.moving(job).carry_out(old, detach=True) == new


def test_all_drivers_leave_a_node_one_after_another(nodes: Nodes) -> None:
    old, new = nodes.node(), nodes.node()
    jobs = sorted((nodes.job(old) for _ in range(2)), key=lambda job: job.name)
    assert drivers_on(nodes.api, old).movable == [job.name for job in jobs]
    between: list[Any] = []

    def first() -> None:
        nodes.runs_on(jobs[0], new)()
        between.append((jobs[1].replicas(), nodes.state(old)[0]))

    with nodes.cluster(jobs[0], first), nodes.cluster(jobs[1], nodes.runs_on(jobs[1], new)):
        move_all([nodes.moving(job) for job in jobs], old)
    assert between == [(1, True)]
    assert nodes.state(old) == (True, set())
    assert "stays cordoned for the other drivers that leave it" in nodes.said.getvalue()


def test_if_one_driver_goes_back_the_others_are_not_stopped(nodes: Nodes) -> None:
    old = nodes.node()
    jobs = [nodes.job(old) for _ in range(2)]
    moves = [replace(nodes.moving(jobs[0]), node_limit_s=0), nodes.moving(jobs[1])]
    with nodes.cluster(jobs[0], lambda: None), pytest.raises(NoOtherNode) as raised:
        move_all(moves, old)
    assert raised.value.given == f"none within 0 s; {old} takes pods again"
    assert ([job.replicas() for job in jobs], nodes.state(old)) == ([1, 1], (False, set()))


def test_a_driver_that_cannot_go_back_either_is_said(nodes: Nodes) -> None:
    old = nodes.node()
    client.CoreV1Api(nodes.api).patch_node(old, {"spec": {"unschedulable": True}})
    job = nodes.job(old)
    with nodes.cluster(job, lambda: None), pytest.raises(NoOtherNode) as raised:
        replace(nodes.moving(job), node_limit_s=0).carry_out(old)
    assert raised.value.given == f"none within 0 s; {old} stays cordoned, as it was, or is gone"


def test_what_cannot_move_is_refused_before_anything_is_stopped(nodes: Nodes) -> None:
    with pytest.raises(JobNotDeployed):
        node_left(nodes.api, "nobody")
    waiting = nodes.job(None)
    with pytest.raises(DriverOnNoNode) as raised:
        node_left(nodes.api, waiting.name)
    assert (raised.value.code, raised.value.given) == ("DEP-043", "its driver waits for a node")
    # Its pod has not ended yet.
    stopping = nodes.job(nodes.node())
    nodes.objects.apply({**stopping.driver, "spec": {**stopping.driver["spec"], "replicas": 0}})
    with pytest.raises(DriverOnNoNode) as raised:
        node_left(nodes.api, stopping.name)
    assert (raised.value.given, raised.value.fix) == ("it is stopped", f"run it: penstock resume ENV --job {stopping.name}")
    with pytest.raises(DriverOnNoNode):
        drivers_on(nodes.api, nodes.node())
    with pytest.raises(WrongUsage):
        drivers_on(nodes.api, "nowhere")


def test_a_node_is_shown_with_its_pods_and_what_becomes_of_them(nodes: Nodes) -> None:
    old = nodes.node()
    job, other = nodes.job(old), nodes.job(old)
    found = node_in_use(nodes.api, old)
    assert found is not None
    text = "\n".join(node_lines(found, [job.name], datetime.now(UTC), Screen(160)))
    rows = [line.split() for line in text.splitlines()]
    assert ["node", old, "m6a.large"] in rows and ["pool", "drivers"] in rows
    assert f"job-{job.name}/{job.name}-driver-0  is stopped at the end of its micro-batch" in text
    assert f"job-{other.name}/{other.name}-driver-0  stays" in text


def test_who_may_not_cordon_a_node_stops_nothing(nodes: Nodes, kube: ApiServer) -> None:
    old, user = nodes.node(), f"u{uuid.uuid4().hex[:6]}"
    job = nodes.job(old)
    rights = [
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list"]},
        {"apiGroups": ["apps"], "resources": ["statefulsets", "statefulsets/scale"], "verbs": ["get", "list", "patch"]},
    ]
    rbac = "rbac.authorization.k8s.io"
    role = {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": user}}
    nodes.objects.apply({**role, "rules": rights})
    reference = {"apiGroup": rbac, "kind": "ClusterRole", "name": user}
    subjects = [{"kind": "User", "name": user, "apiGroup": rbac}]
    nodes.objects.apply({**role, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": subjects})
    with config.new_client_from_config(config_file=str(kube.kubeconfig)) as limited:
        limited.set_default_header("Impersonate-User", user)
        assert node_left(limited, job.name) == old
        with pytest.raises(KubernetesRefused):
            replace(nodes.moving(job), api=limited).carry_out(old)
    assert (job.replicas(), nodes.state(old)) == (1, (False, set()))


def _node(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
