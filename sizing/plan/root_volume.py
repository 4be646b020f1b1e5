"""IOPS and throughput of the nodes' gp3 root volumes, which all executors of a node share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from penstock.sizing.cluster import Cluster
from penstock.sizing.cost.usage import GP3_FREE_IOPS, GP3_FREE_MIBPS
from penstock.sizing.disk_throughput import DiskThroughput
from penstock.sizing.errors import RootVolumeTooSlow
from penstock.sizing.planned_nodes import NodesPlan, RootVolumePlan
from penstock.sizing.units import MIB
from penstock.sizing.violation import Violation, violated

# Source: Karpenter 1.14.1's CRD of the EC2NodeClass, blockDeviceMappings; as `penstock.infra.parts.nodes` allows.
MOST_IOPS = 16_000
MOST_MIBPS = 1_000
# Source: Amazon EBS User Guide, "General Purpose SSD volumes": 0.25 MiB/s per provisioned IOPS, and 500 IOPS per GiB.
IOPS_PER_MIBPS = 4
IOPS_PER_GIB = 500
# Ours: a change of the EC2NodeClass replaces every node of it, so a load that changes a little must not change it.
STEP_IOPS = 500
STEP_MIBPS = 25

_MEASURED = "rootVolumePerformance of the environment, if they are measured to need less"

# Group of executors -> the disk throughput of each of them.
Throughputs = Mapping[str, DiskThroughput]


class _Node(NamedTuple):
    """What the executors on one node need, how many they are, and the first of their groups."""

    mibps: float
    iops: int
    executors: int
    group: str
    launch_types: Sequence[str]


def planned_root_volume(nodes: NodesPlan, executors: Throughputs, cluster: Cluster) -> RootVolumePlan:
    """The performance of the root volumes: what the environment gives, otherwise what the executors need, at least gp3's baseline.

    Args:
        nodes: the nodes; those of both orders count, as Karpenter may have either.
        executors: group -> the disk throughput of one of its pods; groups that are not in it need none.
        cluster: the environment.
    """
    needs = list(_needs(nodes, executors))
    needed_mibps = round(max((node.mibps for node in needs), default=0.0), 2)
    needed_iops = max((node.iops for node in needs), default=0)
    given = cluster.root_volume
    if given is None:
        mibps = min(MOST_MIBPS, _stepped(needed_mibps, GP3_FREE_MIBPS, STEP_MIBPS))
        iops = min(MOST_IOPS, max(IOPS_PER_MIBPS * mibps, _stepped(needed_iops, GP3_FREE_IOPS, STEP_IOPS)))
    else:
        iops, mibps = given.iops, given.mibps
    return RootVolumePlan(needed_iops=needed_iops, needed_mibps=needed_mibps, iops=iops, mibps=mibps)


def root_volume_violations(nodes: NodesPlan, executors: Throughputs, cluster: Cluster) -> list[tuple[str, Violation]]:
    """SIZ-064 if the executors of a node need more than its root volume, or any instance type that it may be, has.

    Args:
        nodes: with the planned root volume.
        executors: see `planned_root_volume`.
        cluster: the environment.

    Returns:
        The group of the executors, or an empty text for the size of the volume; and the violation. None where the environment gives the
        performance of the volumes.
    """
    if cluster.root_volume is not None:
        return []
    needs, volume = list(_needs(nodes, executors)), nodes.root_volume
    found = [*_too_much(needs, volume), *_volume_too_small(volume, cluster)]
    return found or list(_bandwidth_too_low(needs, cluster))


def root_volume_notes(nodes: NodesPlan, executors: Throughputs, cluster: Cluster) -> Iterator[str]:
    """What the environment gives is less than what the executors need, or some of the instance types sustain less.

    Args:
        nodes: with the planned root volume.
        executors: see `planned_root_volume`.
        cluster: the environment.
    """
    volume = nodes.root_volume
    if volume.mibps < volume.needed_mibps or volume.iops < volume.needed_iops:
        yield (
            f"the root volumes' {volume.mibps:,} MiB/s and {volume.iops:,} IOPS are less than the {volume.needed_mibps:,.0f} MiB/s and "
            f"{volume.needed_iops:,} IOPS that the executors of a node may need"
        )
    slow = _slow_types(nodes, executors, cluster)
    if slow:
        names = ", ".join(slow[:3]) + (f" and {len(slow) - 3} more" if len(slow) > 3 else "")
        yield f"executors may run on {names}, which sustain less to EBS than they need there; exclude them in the NodePool"


def _slow_types(nodes: NodesPlan, executors: Throughputs, cluster: Cluster) -> tuple[str, ...]:
    found = {
        name
        for node in _needs(nodes, executors)
        for name in node.launch_types
        if (mibps := ebs_mibps(name, cluster)) is not None and mibps < node.mibps
    }
    return tuple(sorted(found))


def ebs_mibps(instance_type: str, cluster: Cluster) -> float | None:
    """The EBS bandwidth that an instance type sustains, in MiB/s; None: unknown. Smaller types exceed it for half an hour a day."""
    instance = cluster.catalog.get(instance_type)
    if instance is None or instance.ebs_baseline_mbps is None:
        return None
    return instance.ebs_baseline_mbps * 1_000_000 / 8 / MIB


def _needs(nodes: NodesPlan, executors: Throughputs) -> Iterator[_Node]:
    for group in (*nodes.one_batch.groups, *nodes.staged.groups):
        pods = [(pods, executors[pods.group]) for pods in group.pods if pods.group in executors]
        if pods:
            yield _Node(
                mibps=sum(on_node.count * each.mibps for on_node, each in pods),
                iops=sum(on_node.count * each.iops for on_node, each in pods),
                executors=sum(on_node.count for on_node, _ in pods),
                group=pods[0][0].group,
                launch_types=group.launch_types,
            )


def _too_much(needs: Sequence[_Node], volume: RootVolumePlan) -> Iterator[tuple[str, Violation]]:
    """More MiB/s than gp3 has at most.

    More I/O operations are a note alone: most of them are reads of the state, of which a node's page cache may serve many, so that they are
    an upper bound. What is written in MiB/s has to be written.
    """
    by_mibps = max(needs, key=lambda node: node.mibps, default=None)
    if by_mibps is not None and by_mibps.mibps > volume.mibps:
        given = f"{volume.mibps:,} MiB/s, the most that a gp3 volume has"
        need, fix = f"{by_mibps.mibps:,.0f} MiB/s for {_executors(by_mibps)}", f"{_fewer(by_mibps)}, or {_MEASURED}"
        yield by_mibps.group, violated(RootVolumeTooSlow, path=by_mibps.group, given=given, need=need, fix=fix)


def _volume_too_small(volume: RootVolumePlan, cluster: Cluster) -> Iterator[tuple[str, Violation]]:
    own_gib, gib = cluster.node_settings.root_volume_gib, -(-volume.iops // IOPS_PER_GIB)
    if volume.iops > GP3_FREE_IOPS and gib > own_gib:
        need = f"at least {gib} GiB for {volume.iops:,} IOPS: EBS provisions up to {IOPS_PER_GIB} per GiB"
        fix = f'rootVolume: "{gib}Gi"'
        yield "", violated(RootVolumeTooSlow, path="spec.nodes.rootVolume", given=f"{own_gib} GiB", need=need, fix=fix)


def _bandwidth_too_low(needs: Sequence[_Node], cluster: Cluster) -> Iterator[tuple[str, Violation]]:
    for node in sorted(needs, key=lambda node: node.mibps, reverse=True):
        sustained = [ebs_mibps(name, cluster) for name in node.launch_types]
        known = [mibps for mibps in sustained if mibps is not None]
        if known and len(known) == len(sustained) and max(known) < node.mibps:
            need = f"{node.mibps:,.0f} MiB/s for {_executors(node)}"
            given = f"instance types that sustain at most {max(known):,.0f} MiB/s to EBS"
            fix = f"{_fewer(node)}, larger types in their NodePool, or {_MEASURED}"
            yield node.group, violated(RootVolumeTooSlow, path=node.group, given=given, need=need, fix=fix)
            return


def _fewer(node: _Node) -> str:
    if node.executors == 1:
        return "more executors, each with fewer slots"
    return "fewer executors on a node: spread.nodes: required, or fewer vCPUs of a node in their NodePool"


def _executors(node: _Node) -> str:
    return "an executor" if node.executors == 1 else f"the {node.executors} executors of a node"


def _stepped(needed: float, baseline: int, step: int) -> int:
    return baseline if needed <= baseline else math.ceil(needed / step) * step
