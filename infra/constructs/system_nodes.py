"""The nodes of the system pods: a managed node group, always on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cdktf import TerraformResourceLifecycle
from constructs import Construct

from penstock.infra.aws_bindings import aws
from penstock.infra.constructs.role import Role
from penstock.infra.environment import Environment
from penstock.infra.parts.eks import SystemNodes as Asked
from penstock.infra.parts.eks import arm
from penstock.infra.policies import trust
from penstock.infra.system_pods import ROLE_LABEL, SYSTEM_ROLE, TAINT

# Permissions of a node itself: join the cluster, pull images, be reached by SSM instead of SSH. The VPC CNI plugin has its own role, so
# that no other pod of a node can change addresses.
NODE_POLICIES = ("AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly", "AmazonSSMManagedInstanceCore")
# EKS's default, enough for the images of the system pods. Source: Amazon EKS API reference, CreateNodegroup, diskSize.
VOLUME_GIB = 20
# Bottlerocket has a separate volume for its system, which stays small. Source: Bottlerocket's documentation, "Default Volumes".
BOTTLEROCKET_SYSTEM_GIB = 4
# EKS's names of the AMI types. Source: Amazon EKS API reference, Nodegroup, amiType.
_IMAGES = {
    ("AL2023", False): "AL2023_x86_64_STANDARD",
    ("AL2023", True): "AL2023_ARM_64_STANDARD",
    ("Bottlerocket", False): "BOTTLEROCKET_x86_64",
    ("Bottlerocket", True): "BOTTLEROCKET_ARM_64",
}


class SystemNodes(Construct):
    """A role, a launch template and a managed node group.

    Args:
        scope: the stack.
        id: the construct's id.
        environment: the environment of the stack.
        cluster: that the nodes join; they have its Kubernetes version.
        subnet_ids: private ones, one per zone.
        partition: of AWS.
        dns_suffix: of the partition.
        after: resources of the cluster that a node needs to become ready.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        environment: Environment,
        *,
        cluster: Any,
        subnet_ids: Sequence[str],
        partition: str,
        dns_suffix: str,
        after: Sequence[Any],
    ) -> None:
        super().__init__(scope, id)
        spec = environment.spec
        if spec.eks is None or spec.nodes is None:
            raise ValueError(f"{environment.name} has no cluster")
        self._name = f"{environment.prefix}-{SYSTEM_ROLE}"
        self._family = spec.nodes.ami_family
        self._tags = {"Name": self._name, "penstock:environment": environment.name, **spec.tags}
        managed = [f"arn:{partition}:iam::aws:policy/{policy}" for policy in NODE_POLICIES]
        self._role = Role(self, f"{id}-role", name=self._name, trusted=trust(f"ec2.{dns_suffix}"), managed=managed)
        self.group = self._group(spec.eks.system_nodes, cluster, subnet_ids, after)
        self.group.override_logical_id(id)

    def _group(self, asked: Asked, cluster: Any, subnet_ids: Sequence[str], after: Sequence[Any]) -> Any:
        """Replaced, new group first, where EKS cannot change it in place, such as for other instance types: hence a name prefix."""
        module = aws.eks_node_group
        template = self._template()
        return module.EksNodeGroup(
            self,
            "group",
            cluster_name=cluster.name,
            version=cluster.version,
            node_group_name_prefix=f"{SYSTEM_ROLE}-",
            node_role_arn=self._role.arn,
            subnet_ids=list(subnet_ids),
            ami_type=_IMAGES[self._family, arm(asked.instance_types[0])],
            capacity_type="ON_DEMAND",
            instance_types=asked.instance_types,
            launch_template=module.EksNodeGroupLaunchTemplate(id=template.id, version=f"${{{template.fqn}.latest_version}}"),
            scaling_config=module.EksNodeGroupScalingConfig(min_size=asked.min, max_size=asked.max, desired_size=asked.min),
            update_config=module.EksNodeGroupUpdateConfig(max_unavailable=1),
            labels={ROLE_LABEL: SYSTEM_ROLE},
            taint=[module.EksNodeGroupTaint(key=TAINT, value="true", effect="NO_SCHEDULE")],
            # A node never joins without the policies of its role.
            depends_on=[*after, *self._role.policies],
            # Nodes added manually are kept.
            lifecycle=TerraformResourceLifecycle(create_before_destroy=True, ignore_changes=["scaling_config[0].desired_size"]),
        )

    def _template(self) -> Any:
        """Pods of these nodes cannot get the node's credentials: their request exceeds the hop limit."""
        module = aws.launch_template
        template = module.LaunchTemplate(
            self,
            "template",
            name=self._name,
            update_default_version=True,
            metadata_options=module.LaunchTemplateMetadataOptions(
                http_endpoint="enabled", http_tokens="required", http_put_response_hop_limit=1, instance_metadata_tags="disabled"
            ),
            block_device_mappings=[_volume(device, gib) for device, gib in _volumes(self._family)],
            tag_specifications=[_tagged(kind, self._tags) for kind in ("instance", "volume", "network-interface")],
        )
        template.override_logical_id(f"{self.node.id}-template")
        return template


def _volumes(family: str) -> list[tuple[str, int]]:
    if family == "Bottlerocket":
        return [("/dev/xvda", BOTTLEROCKET_SYSTEM_GIB), ("/dev/xvdb", VOLUME_GIB)]
    return [("/dev/xvda", VOLUME_GIB)]


def _volume(device: str, gib: int) -> Any:
    """Encrypted with the account's default EBS key: these nodes hold no data of jobs."""
    module = aws.launch_template
    ebs = module.LaunchTemplateBlockDeviceMappingsEbs(volume_size=gib, volume_type="gp3", encrypted="true", delete_on_termination="true")
    return module.LaunchTemplateBlockDeviceMappings(device_name=device, ebs=ebs)


def _tagged(kind: str, tags: Mapping[str, str]) -> Any:
    """Instances of a launch template do not get the provider's default tags."""
    return aws.launch_template.LaunchTemplateTagSpecifications(resource_type=kind, tags=dict(tags))
