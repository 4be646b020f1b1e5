"""Stacks that are applied in an existing cluster, planned again and destroyed, and what the cluster's owners see of that."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from penstock.scripts.local.rehearsed_stacks import RehearsedStacks
from penstock.scripts.provisioning import existing_cluster
from penstock.scripts.provisioning.aws_access import AwsAccess

ADDED = ("entries", "associations")


def leaves_a_cluster_as_it_was(stacks: RehearsedStacks, access: AwsAccess, *, created: bool, services: Collection[str] = ()) -> None:
    """Applies stacks, plans them again and destroys them.

    Args:
        stacks: with the stack of the cluster.
        access: the emulated AWS of the environment, which has the cluster.
        created: whether Karpenter is the stacks' own.
        services: service accounts whose pods get roles, in addition to Karpenter's.
    """
    before = _seen(access)
    assert existing_cluster.check(access)
    stacks.apply()
    assert [str(changes) for changes in stacks.plan()] == []
    meanwhile = _seen(access)
    assert {what: seen for what, seen in meanwhile.items() if what not in ADDED} == {
        what: seen for what, seen in before.items() if what not in ADDED
    }
    eks = access.environment.spec.eks
    assert eks is not None
    assert set(eks.admins) <= set(meanwhile["entries"])
    accounts = {one["serviceAccount"] for one in meanwhile["associations"]}
    assert accounts == {*services, *(["karpenter"] if created else [])}
    # What the stacks have made does not count against the environment.
    assert existing_cluster.check(access)
    assert existing_cluster.has_own_controller(access) == created
    stacks.destroy()
    assert _seen(access) == before


def _seen(access: AwsAccess) -> dict[str, Any]:
    network, name = access.environment.spec.network, access.environment.cluster_name
    assert network is not None and network.existing is not None
    ec2, eks = access.client("ec2"), access.client("eks")
    return {
        "vpc": ec2.describe_vpcs(VpcIds=[network.existing.vpc_id])["Vpcs"],
        "subnets": ec2.describe_subnets(SubnetIds=network.existing.private_subnet_ids)["Subnets"],
        "cluster": eks.describe_cluster(name=name)["cluster"],
        "add-ons": eks.list_addons(clusterName=name)["addons"],
        "entries": sorted(eks.list_access_entries(clusterName=name)["accessEntries"]),
        "associations": eks.list_pod_identity_associations(clusterName=name)["associations"],
    }
