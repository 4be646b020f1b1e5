"""EC2NodeClasses: the settings of nodes that affect their allocatable.

Source: the CRD ``karpenter.k8s.aws_ec2nodeclasses`` of Karpenter 1.14.1. Everything else of an EC2NodeClass (subnets, roles, user data)
has no effect on the placement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from penstock.jobs.document import shown
from penstock.scripts.planning.kubernetes_object import KubernetesObject
from penstock.sizing.catalog.allocatable import NodeSettings
from penstock.sizing.errors import PenstockError, raise_all
from penstock.sizing.placement.errors import BadScenario, NotModelled, UnknownName
from penstock.sizing.placement.quantities import NANO, nano
from penstock.sizing.units import NotAQuantity

_GIB = 1024**3
# kubelet settings that change the allocatable of a node in a way that is not modelled.
_OTHER_KUBELET = ("podsPerCore", "systemReserved", "kubeReserved", "evictionHard", "evictionSoft")
_FAMILIES = {"al2023": "AL2023", "bottlerocket": "Bottlerocket"}
# The device that holds the pods' files. Source: karpenter-provider-aws v1.14.1 (``EphemeralBlockDevice``).
_DEVICES = {"AL2023": "/dev/xvda", "Bottlerocket": "/dev/xvdb"}
_REFERENCE = ("spec", "template", "spec", "nodeClassRef", "name")


def unknown_classes(node_pools: Sequence[KubernetesObject], classes: Sequence[KubernetesObject]) -> Iterator[PenstockError]:
    """NodePools whose EC2NodeClass is not among those given, if any is."""
    names = [each.name for each in classes]
    for pool in node_pools if names else ():
        if isinstance(name := pool.get(*_REFERENCE), str) and name not in names:
            need = f"one of the EC2NodeClasses that are given: {', '.join(sorted(names))}"
            yield pool.refused(UnknownName, *_REFERENCE, need=need, fix="add the EC2NodeClass, or correct the name")


def settings_of(classes: Sequence[KubernetesObject], settings: NodeSettings) -> NodeSettings:
    """The node settings of EC2NodeClasses.

    Args:
        classes: the EC2NodeClasses; none: `settings` hold.
        settings: the settings where they say nothing.

    Raises:
        PenstockError: SIZ-020 or SIZ-021, if a class has settings that are not modelled, or if two have different settings.
    """
    faults: list[PenstockError] = []
    made: list[NodeSettings] = []
    for each in classes:
        faults += _not_modelled(each)
        try:
            made.append(settings.model_copy(update=_settings(each, settings)))
        except PenstockError as error:
            faults += error.errors
    for each, own in zip(classes, made, strict=False):
        if own != made[0]:
            need = f"the node settings of {classes[0].name}: AMI family, kubelet.maxPods and the size of the root volume"
            faults.append(each.refused(NotModelled, "spec", need=need, fix="place the NodePools of each EC2NodeClass separately"))
    raise_all(faults)
    return made[0] if made else settings


def _not_modelled(item: KubernetesObject) -> Iterator[PenstockError]:
    fix = "remove it; the result then does not take it into account"
    for name in _OTHER_KUBELET:
        if item.get("spec", "kubelet", name) is not None:
            yield item.refused(NotModelled, "spec", "kubelet", name, need=f"no kubelet.{name}: it is not modelled", fix=fix)
    if item.get("spec", "instanceStorePolicy") is not None:
        yield item.refused(NotModelled, "spec", "instanceStorePolicy", need="no instanceStorePolicy: it is not modelled", fix=fix)


def _settings(item: KubernetesObject, settings: NodeSettings) -> dict[str, Any]:
    found: dict[str, Any] = {}
    max_pods = item.get("spec", "kubelet", "maxPods")
    if max_pods is not None:
        if not isinstance(max_pods, int) or isinstance(max_pods, bool) or max_pods < 0:
            raise item.refused(BadScenario, "spec", "kubelet", "maxPods", need="an integer of at least 0", fix="correct the number")
        found["max_pods"] = max_pods
    found["ami_family"] = family = _family(item) or settings.ami_family
    if size := _root_volume_gib(item, family):
        found["root_volume_gib"] = size
    return found


def _family(item: KubernetesObject) -> str | None:
    path: tuple[str | int, ...] = ("spec", "amiFamily")
    given = item.get(*path)
    for index, term in enumerate(item.items("spec", "amiSelectorTerms")):
        if isinstance(term, dict) and isinstance(term.get("alias"), str):
            path, given = ("spec", "amiSelectorTerms", index, "alias"), term["alias"].partition("@")[0]
    if given is None:
        return None
    family = _FAMILIES.get(str(given).lower())
    if family is None:
        raise item.refused(NotModelled, *path, need=f"AL2023 or Bottlerocket, not {shown(given)}", fix="use one of these")
    return family


def _root_volume_gib(item: KubernetesObject, family: str) -> int | None:
    """The size of the volume that holds the pods' files: the one marked as root, else the AMI family's own device."""
    mappings = [(index, each) for index, each in enumerate(item.items("spec", "blockDeviceMappings")) if isinstance(each, dict)]
    marked = [pair for pair in mappings if pair[1].get("rootVolume") is True]
    for index, _ in (marked or [pair for pair in mappings if pair[1].get("deviceName") == _DEVICES[family]])[:1]:
        path = ("spec", "blockDeviceMappings", index, "ebs", "volumeSize")
        size = item.get(*path)
        if size is None:
            return None
        try:
            gib, rest = divmod(nano(size), _GIB * NANO)
        except NotAQuantity as fault:
            raise item.refused(BadScenario, *path, need=fault.need, fix=fault.fix) from None
        if rest or not gib:
            raise item.refused(NotModelled, *path, need="a whole number of GiB", fix="use Gi")
        return gib
    return None
