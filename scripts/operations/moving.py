"""The driver of a job moves to another node: it is stopped at the end of its micro-batch, and started while its node is cordoned.

A driver's pod may not be disrupted, so Karpenter never drains its node. Two drivers of a job can't run at a time, so nothing is started
before the first one has ended. If no other node takes the driver, the cordon is lifted, and it goes back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from penstock.scripts.errors import WrongUsage
from penstock.scripts.operations.cordon import NODE_POOL, cordon, leaving, left_by, lift
from penstock.scripts.operations.resuming import driver_of, is_ready, start
from penstock.scripts.operations.running_job import READY_LIMIT_S, wait_until_it_reads
from penstock.scripts.operations.status_table import duration
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning.draining import LOOK_EVERY_S, POD_MARGIN_S, of_job, stop_job
from penstock.scripts.provisioning.errors import DriverOnNoNode, NoOtherNode
from penstock.scripts.provisioning.kubernetes_access import REQUEST_LIMIT_S, asked
from penstock.scripts.render.table import UNBROKEN

# Ours: EC2 starts an instance and the kubelet registers it within two minutes. Less than consolidateAfter of the shipped pools: the node
# that the driver has left is still there to go back to.
NODE_LIMIT_S = 240.0
_JOB = "penstock.dev/job"
_ABSENT = 404


@dataclass(frozen=True)
class NodePod:
    """A pod on a node.

    Args:
        name: ``namespace/name``.
        job: whose driver it is; None of any other pod.
        bounded: whether it is a driver that ends by itself.
    """

    name: str
    job: str | None
    bounded: bool


@dataclass(frozen=True)
class NodeInUse:
    """A node with its pods.

    Args:
        name: of the node.
        began: when it was registered.
        instance_type: empty if the node does not say.
        pool: Karpenter's NodePool; None if Karpenter does not manage it.
        leaving: jobs whose drivers are leaving it.
        pods: on it, without those of DaemonSets.
    """

    name: str
    began: datetime
    instance_type: str
    pool: str | None
    leaving: frozenset[str]
    pods: tuple[NodePod, ...]

    @property
    def movable(self) -> list[str]:
        """Jobs whose drivers can leave it, or are leaving it."""
        return sorted({pod.job for pod in self.pods if pod.job and not pod.bounded} | self.leaving)


def node_in_use(api: client.ApiClient, name: str) -> NodeInUse | None:
    """A node; None if there is none of that name.

    Raises:
        KubernetesRefused: DEP-010.
        ApiServerNotReached: DEP-007.
    """
    core = client.CoreV1Api(api)
    with asked(f"the node {name}"):
        try:
            node = core.read_node(name, _request_timeout=REQUEST_LIMIT_S)
        except ApiException as error:
            if error.status == _ABSENT:
                return None
            raise
        pods = core.list_pod_for_all_namespaces(field_selector=f"spec.nodeName={name}", _request_timeout=REQUEST_LIMIT_S).items
    labels = node.metadata.labels or {}
    return NodeInUse(
        name=name,
        began=node.metadata.creation_timestamp,
        instance_type=labels.get("node.kubernetes.io/instance-type", ""),
        pool=labels.get(NODE_POOL),
        leaving=frozenset(leaving(node)),
        pods=tuple(_pod(pod) for pod in pods if not _owned_by(pod, "DaemonSet") and pod.status.phase not in ("Succeeded", "Failed")),
    )


def drivers_on(api: client.ApiClient, name: str) -> NodeInUse:
    """A node whose drivers can leave it.

    Raises:
        WrongUsage: USE-001, there is no such node.
        DriverOnNoNode: DEP-043, no driver could leave it.
        KubernetesRefused: DEP-010.
        ApiServerNotReached: DEP-007.
    """
    found = node_in_use(api, name)
    if found is None:
        raise WrongUsage(given=f"--node {name}", need="a node of the cluster", fix="list them: kubectl get nodes")
    if not found.movable:
        fix = "nothing to move; a bounded run ends by itself"
        raise DriverOnNoNode(path=f"node {name}", given="no driver of a job that runs until it is stopped", need="one", fix=fix)
    return found


def node_left(api: client.ApiClient, job: str) -> str:
    """The node that the driver of a job leaves: where it is, or where it was when a command was interrupted.

    Raises:
        JobNotDeployed: DEP-017.
        DriverOnNoNode: DEP-043, the job is stopped, or its pod waits for a node.
        KubernetesRefused: DEP-010.
        ApiServerNotReached: DEP-007.
    """
    stopped = driver_of(api, job).spec.replicas == 0
    # The pod of a driver that somebody stops is still on its node.
    node = left_by(api, job) or (None if stopped else _node_of(api, job))
    if node is not None:
        return node
    if stopped:
        given, fix = "it is stopped", f"run it: penstock resume ENV --job {job}"
    else:
        given, fix = "its driver waits for a node", "check penstock doctor"
    raise DriverOnNoNode(path=f"job {job}", given=given, need="a driver on a node that it can leave", fix=fix)


@dataclass(frozen=True)
class Moving:
    """Moves the driver of one job.

    Args:
        api: client of the cluster's API.
        job: its name.
        steps: receives a line per finished step.
        why_not: what is known of a driver that does not read.
        node_limit_s: for the driver to be placed on another node, in seconds.
        ready_limit_s: for its query to read from then on, in seconds.
        pod_margin_s: seconds that a pod may take to end in addition to its own grace period.
    """

    api: client.ApiClient
    job: str
    steps: Steps
    why_not: Callable[[], str]
    node_limit_s: float = NODE_LIMIT_S
    ready_limit_s: float = READY_LIMIT_S
    pod_margin_s: float = POD_MARGIN_S

    def carry_out(self, left: str, *, detach: bool = False) -> str:
        """Stop the driver, start it on another node, and wait until its query reads. Repeated, it goes on where it was interrupted.

        Args:
            left: the node that it leaves, as `node_left` says.
            detach: return once it is on another node.

        Returns:
            The node that it is on.

        Raises:
            JobNotDeployed: DEP-017.
            NoOtherNode: DEP-044; the driver goes back to the node that it left.
            PenstockError: DEP-007, DEP-010, DEP-011, DEP-018.
        """
        # First: who may not do this has stopped nothing.
        cordon(self.api, left, self.job)
        with self._unfinished(f"{left} is cordoned: the same command goes on; after penstock resume, too, the driver runs elsewhere"):
            if _node_of(self.api, self.job) == left:
                self._stop()
            start(self.api, driver_of(self.api, self.job))
            node = self._placed(left)
        self._release(left)
        if not detach:
            with self.steps.at("start", f"waiting for {self.job} to read its sources") as step:
                wait_until_it_reads(f"job {self.job}", lambda: is_ready(driver_of(self.api, self.job)), self.why_not, self.ready_limit_s)
                step.said = f"{self.job} runs"
        return node

    def _stop(self) -> None:
        with self.steps.at("stop", f"waiting for {self.job} to finish its micro-batch, and for its pods to end") as step:
            stopped = stop_job(self.api, self.job, self.pod_margin_s)
            step.said = f"{self.job} is stopped" if stopped else f"{self.job} was stopped already"

    def _placed(self, left: str) -> str:
        """The node that the driver is placed on."""
        until_s = time.monotonic() + self.node_limit_s
        with self.steps.at("node", f"waiting for a node other than {left}") as step:
            while (node := _node_of(self.api, self.job)) in (left, None):
                if node == left or time.monotonic() > until_s:
                    raise self._back(left, node)
                time.sleep(LOOK_EVERY_S)
            assert node is not None
            step.said = f"{self.job} has left {left} and is on {node}{self._age(node)}"
        return node

    def _age(self, name: str) -> str:
        node = node_in_use(self.api, name)
        # A blank that does not break is one of tables.
        return "" if node is None else f", which is {duration(datetime.now(UTC) - node.began)} old".replace(UNBROKEN, " ")

    def _back(self, left: str, node: str | None) -> NoOtherNode:
        """Has the driver go back."""
        stays = lift(self.api, left, self.job, reused=True, back=True)
        again = "stays cordoned, as it was, or is gone" if stays else "takes pods again"
        given = f"none within {self.node_limit_s:g} s; {left} {again}" if node is None else f"it is on {left} again"
        need = "another node that takes the driver: room in the limits of its NodePool, and capacity in EC2"
        fix = "check penstock doctor, and the driver's tolerations: they must not be of all taints"
        return NoOtherNode(path=f"job {self.job}", given=given, need=need, fix=fix)

    def _release(self, left: str) -> None:
        node = node_in_use(self.api, left)
        reused = node is not None and (bool(node.pods) or node.pool is None)
        if not lift(self.api, left, self.job, reused=reused):
            self.steps.line("left", f"{left} takes pods again: it has others, or is not Karpenter's")
        elif node is not None and node.leaving - {self.job}:
            self.steps.line("left", f"{left} stays cordoned for the other drivers that leave it")
        elif node is not None:
            self.steps.line("left", f"{left} stays cordoned{'' if node.pool is None else '; Karpenter removes it once it is empty'}")

    @contextmanager
    def _unfinished(self, how: str) -> Iterator[None]:
        """Says what state an interruption or a failure leaves."""
        try:
            yield
        except NoOtherNode:
            raise
        except BaseException:
            self.steps.line("unfinished", how)
            raise


def move_all(moves: Sequence[Moving], left: str, *, detach: bool = False) -> None:
    """Move drivers one after another from a node, which is cordoned until the last one has left. Args and errors as `Moving.carry_out`."""
    waiting = list(moves)
    try:
        for move in moves:
            cordon(move.api, left, move.job)
        while waiting:
            waiting.pop(0).carry_out(left, detach=detach)
    finally:
        # Of a failure or an interruption: these have not been stopped.
        for move in waiting:
            lift(move.api, left, move.job, reused=True)


def _node_of(api: client.ApiClient, job: str) -> str | None:
    """The node that a job's driver is on; None if it is on none."""
    selector = f"{of_job(job)},spark-role=driver"
    with asked(f"the job {job}"):
        pods = client.CoreV1Api(api).list_pod_for_all_namespaces(label_selector=selector, _request_timeout=REQUEST_LIMIT_S).items
    return next((str(pod.spec.node_name) for pod in pods if pod.spec.node_name), None)


def _pod(pod: Any) -> NodePod:
    labels = pod.metadata.labels or {}
    is_driver = labels.get("app.kubernetes.io/part-of") == "penstock" and labels.get("spark-role") == "driver"
    name = f"{pod.metadata.namespace}/{pod.metadata.name}"
    return NodePod(name, labels.get(_JOB) if is_driver else None, bounded=is_driver and _owned_by(pod, "Job"))


def _owned_by(pod: Any, kind: str) -> bool:
    return any(owner.kind == kind for owner in pod.metadata.owner_references or ())
