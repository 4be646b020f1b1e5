"""The input of a placement: NodePools, DaemonSets, pods, and for the staged order existing nodes and arriving pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from penstock.sizing.errors import PenstockError, Place, raise_all
from penstock.sizing.placement.errors import BadRequirement, BadResource, BadScenario, NotModelled, UnknownName
from penstock.sizing.placement.manifest import Labels, Manifest, Name
from penstock.sizing.placement.node_pool_manifests import NodePool
from penstock.sizing.placement.pod_manifests import DaemonSet, Pod
from penstock.sizing.placement.selection import Requirement

__all__ = ["Arrival", "DaemonSet", "ExistingNode", "NodePool", "PodGroup", "Requirement", "Scenario", "findings", "read"]

# More pods than Kubernetes supports in one cluster; anything larger is a typing error.
MAX_PODS = 150_000
# Source: karpenter v1.14.1, BATCH_IDLE_DURATION and BATCH_MAX_DURATION.
BATCH_IDLE_S = 1.0
BATCH_MAX_S = 10.0
# Measured values differ by AMI and type; half a minute to a minute is usual from the launch until the node is ready.
BOOT_S = 45.0

_NOT_MODELLED = {
    "namespaceSelector": "namespaces selected by their labels: list them under namespaces",
    "mismatchLabelKeys": "label keys of pod affinity: write them into the labelSelector",
    "persistentVolumeClaim": "volume claims, which can bind a pod to a zone",
    "ephemeral": "volume claims, which can bind a pod to a zone",
    "awsElasticBlockStore": "disks, which bind a pod to a zone",
    "csi": "CSI volumes, which are limited per node",
    "volumeDevices": "volumes, which can bind a pod to a zone",
    "hostPort": "host ports",
    "hostIP": "host ports",
    "matchFields": "node fields, which Karpenter also rejects",
    "matchLabelKeys": "label keys of pod affinity: write them into the labelSelector",
    "resourceClaims": "dynamic resource allocation",
    "claims": "dynamic resource allocation",
    "replicas": "static NodePools",
    "nodeName": "pods that are already bound: list them under existingNodes",
    "schedulingGates": "scheduling gates",
    "creationTimestamp": "creation timestamps: equal pods are ordered by their groups",
    "runtimeClassName": "runtime classes: specify their overhead and nodeSelector",
}


class PodGroup(Manifest):
    """A group of identical pods.

    Args:
        count: number of pods; 0 for a group that only arrives later or only runs on existing nodes.
        pod: one of the pods; its name is the group's name.
    """

    count: Annotated[int, Field(ge=0, le=MAX_PODS)] = 0
    pod: Pod

    @property
    def name(self) -> str:
        """The group's name."""
        return self.pod.metadata.name


class ExistingNode(Manifest):
    """An existing, initialized node.

    Args:
        name: Karpenter tries existing nodes in the order of their names.
        node_pool: its NodePool.
        instance_type: its type.
        zone: availability zone.
        capacity_type: ``spot`` or ``on-demand``.
        labels: labels of your own on it, besides those of its NodePool and its type.
        pods: pods on it, by group, without DaemonSets.
    """

    name: Name
    node_pool: str
    instance_type: str
    zone: str
    capacity_type: Literal["on-demand", "spot"]
    labels: Labels = {}
    pods: dict[str, Annotated[int, Field(ge=0, le=MAX_PODS)]] = {}


class Arrival(Manifest):
    """Pods that arrive at a time.

    Args:
        at_s: seconds from the start.
        group: group of the pods.
        count: number of pods.
    """

    at_s: Annotated[float, Field(ge=0, le=1e7, allow_inf_nan=False, alias="at_s")]
    group: str
    count: Annotated[int, Field(ge=1, le=MAX_PODS)]


class Scenario(Manifest):
    """The input of a placement.

    Args:
        name: name, for display.
        node_pools: the NodePools, in any order.
        daemon_sets: the DaemonSets.
        pods: the groups of pods.
        spot_model: ``ratio``: each spot price is a share of the on-demand price; ``catalog``: the spot prices of the catalog; None: the
            catalog's unless there is a ratio.
        spot_ratio: that share, rounded to 4 decimals of a USD; not allowed with ``catalog``.
        existing_nodes: nodes that exist at the start.
        arrivals: pods that arrive later; the `count` of an arriving group is the sum of its arrivals, or omitted.
        batch_idle_s: a batch ends when no pod has arrived for this long.
        batch_max_s: maximum duration of a batch.
        boot_s: time from a claim until its node is ready and its pods start.
    """

    name: str = ""
    node_pools: Annotated[tuple[NodePool, ...], Field(min_length=1, strict=False)]
    daemon_sets: tuple[DaemonSet, ...] = Field(default=(), strict=False)
    pods: tuple[PodGroup, ...] = Field(strict=False)
    spot_model: Literal["ratio", "catalog"] | None = None
    spot_ratio: Annotated[float, Field(gt=0, le=10, allow_inf_nan=False)] | None = None
    existing_nodes: tuple[ExistingNode, ...] = Field(default=(), strict=False)
    arrivals: tuple[Arrival, ...] = Field(default=(), strict=False)
    batch_idle_s: Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False, alias="batchIdle_s")] = BATCH_IDLE_S
    batch_max_s: Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False, alias="batchMax_s")] = BATCH_MAX_S
    boot_s: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False, alias="boot_s")] = BOOT_S

    @model_validator(mode="after")
    def _names_and_prices_agree(self) -> Scenario:
        if self.spot_model == "ratio" and self.spot_ratio is None:
            raise PydanticCustomError("missing", "{need}", {"need": "spotRatio, the share of the on-demand price", "at": "spotRatio"})
        if self.spot_model == "catalog" and self.spot_ratio is not None:
            raise PydanticCustomError("contradiction", "{need}", {"need": "spotModel: ratio together with spotRatio", "at": "spotModel"})
        return self

    def group(self, name: str) -> PodGroup | None:
        """The group of this name."""
        return next((group for group in self.pods if group.name == name), None)


def read(document: object, path: str = "") -> Scenario:
    """Parses a scenario from a JSON or YAML document.

    Args:
        document: the scenario itself, or a mapping with a ``scenario`` key.
        path: its path within a larger document, for errors.

    Raises:
        BadScenario: SIZ-020, together with all other faults (SIZ-021 to SIZ-024).
    """
    if isinstance(document, Mapping) and "scenario" in document:
        document, path = document["scenario"], _joined(path, "scenario")
    if not isinstance(document, Mapping):
        raise BadScenario(path=path, given=_shown(document), need="a mapping with nodePools and pods", fix="see docs/placement.md")
    try:
        scenario = Scenario.model_validate(document)
    except ValidationError as invalid:
        raise_all(fault for _, fault in findings(invalid, path))
        raise
    raise_all(_name_faults(scenario, path))
    return scenario


def findings(invalid: ValidationError, path: str = "") -> Iterator[tuple[tuple[str | int, ...], PenstockError]]:
    """The errors of a part of a scenario, each with its location in that part.

    Args:
        invalid: raised by the part's model.
        path: path of the part, for the errors.
    """
    for detail in _first_hand(invalid.errors(include_url=False)):
        yield detail["loc"], _fault(detail, path)


def locate(error: PenstockError, file: str) -> PenstockError:
    """The error with its file."""
    for fault in error.errors:
        fault.at = fault.at or Place(file=file)
    return error


def _first_hand(details: Sequence[ErrorDetails]) -> Iterator[ErrorDetails]:
    """The faults without those caused by a nested one: a list whose only item is invalid is not reported as too short."""
    for detail in details:
        inside = [other["loc"] for other in details if len(other["loc"]) > len(detail["loc"])]
        if detail["type"] != "too_short" or not any(loc[: len(detail["loc"])] == detail["loc"] for loc in inside):
            yield detail


def _fault(detail: ErrorDetails, path: str) -> PenstockError:
    context: Mapping[str, Any] = detail.get("ctx") or {}
    where = path
    for part in detail["loc"]:
        where = f"{where}[{part}]" if isinstance(part, int) else _joined(where, str(part))
    where = _joined(where, str(context.get("at", "")))
    kind, need = detail["type"], str(context.get("need") or detail["msg"])
    last = str(detail["loc"][-1]) if detail["loc"] else ""
    if kind == "missing":
        return BadScenario(path=where, need=str(context.get("need") or f"the field {last}"), fix="add it")
    given = str(context.get("given") or _shown(detail["input"]))
    if kind == "extra_forbidden":
        meaning = _NOT_MODELLED.get(last)
        need = f"Penstock does not model {meaning}" if meaning else "a known field; an unknown one could change the placement"
        return NotModelled(path=where, given=given, need=need, fix="remove it; the result then does not take it into account")
    if kind == "not_modelled":
        return NotModelled(path=where, given=given, need=need, fix="remove it; the result then does not take it into account")
    if kind == "quantity":
        return BadResource(path=where, given=given, need=need, fix=str(context.get("fix", "")))
    if kind == "requirement":
        return BadRequirement(path=where, given=given, need=need, fix="see Karpenter's documentation of requirements")
    return BadScenario(path=where, given=given, need=need, fix="see docs/placement.md")


def _name_faults(scenario: Scenario, path: str) -> Iterator[PenstockError]:
    for field, names in (
        ("nodePools", [pool.name for pool in scenario.node_pools]),
        ("pods", [group.name for group in scenario.pods]),
        ("existingNodes", [node.name for node in scenario.existing_nodes]),
    ):
        yield from _repeated(names, _joined(path, field))
    groups = {group.name for group in scenario.pods}
    pools = {pool.name for pool in scenario.node_pools}
    for index, node in enumerate(scenario.existing_nodes):
        where = f"{_joined(path, 'existingNodes')}[{index}]"
        if node.node_pool not in pools:
            yield _unknown(f"{where}.nodePool", node.node_pool, "NodePools", pools)
        for name in node.pods.keys() - groups:
            yield _unknown(f"{where}.pods.{name}", name, "groups", groups)
    for index, arrival in enumerate(scenario.arrivals):
        if arrival.group not in groups:
            yield _unknown(f"{_joined(path, 'arrivals')}[{index}].group", arrival.group, "groups", groups)
    yield from _miscounted(scenario, path)


def _miscounted(scenario: Scenario, path: str) -> Iterator[PenstockError]:
    for index, group in enumerate(scenario.pods):
        arriving = sum(arrival.count for arrival in scenario.arrivals if arrival.group == group.name)
        if arriving and "count" in group.model_fields_set and group.count != arriving:
            where = f"{_joined(path, 'pods')}[{index}].count"
            yield BadScenario(
                path=where, given=str(group.count), need=f"{arriving}, the sum of its arrivals, or no count", fix="use the same number"
            )
    pods = sum(group.count for group in scenario.pods) + sum(arrival.count for arrival in scenario.arrivals)
    if pods > MAX_PODS:
        yield BadScenario(path=_joined(path, "pods"), given=f"{pods} pods", need=f"at most {MAX_PODS}", fix="reduce the counts")


def _repeated(names: Sequence[str], path: str) -> Iterator[PenstockError]:
    for index, name in enumerate(names):
        if name in names[:index]:
            yield BadScenario(path=f"{path}[{index}]", given=name, need="a unique name", fix="rename it, or add the counts")


def _unknown(path: str, given: str, kind: str, known: Iterable[str]) -> UnknownName:
    return UnknownName(
        path=path,
        given=given,
        need=f"one of the {kind} of the scenario: {', '.join(sorted(known)) or 'none'}",
        fix="check the name",
    )


def _joined(path: str, field: str) -> str:
    return f"{path}.{field}" if path and field else path or field


def _shown(value: object) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
