"""The cluster stack: EKS, access to it and its administrators, its add-ons and the nodes of its system pods; or an existing cluster."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cdktf import Postcondition, TerraformResourceLifecycle
from constructs import Construct

from penstock.infra.aws_bindings import aws
from penstock.infra.constructs.aws_stack import AwsStack
from penstock.infra.constructs.encryption_key import EncryptionKey
from penstock.infra.constructs.role import Role, of_cluster, pod_identity_trust
from penstock.infra.constructs.system_nodes import SystemNodes
from penstock.infra.environment import Environment
from penstock.infra.log_encryption import log_group_arn, logs_service
from penstock.infra.parts.eks import AddOn, Eks, principal_id
from penstock.infra.parts.existing_cluster import ExistingCluster
from penstock.infra.policies import allow, trust
from penstock.infra.stacks.network import HTTPS

STACK = "cluster"
EKS_SERVICE = "eks.amazonaws.com"
CLUSTER_POLICY = "AmazonEKSClusterPolicy"
# Source: Amazon EKS User Guide, "Send control plane logs to CloudWatch Logs".
LOG_TYPES = ("api", "audit", "authenticator", "controllerManager", "scheduler")
# EKS's actions on the key of the cluster's secrets. Source: Amazon EKS User Guide, "Enabling secret encryption".
SECRETS_ACTIONS = ("kms:Encrypt", "kms:Decrypt", "kms:ListGrants", "kms:DescribeKey")
# Source: Amazon EKS User Guide, "Review access policy permissions".
ADMIN_POLICY = "eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
TOKEN_AUDIENCE = "sts.amazonaws.com"
SYSTEM_NAMESPACE = "kube-system"
# A node becomes ready only with these, so they are installed before it; the others have pods that wait for a node, and follow after.
NODE_ADD_ONS: tuple[AddOn, ...] = ("vpc-cni", "kube-proxy", "eks-pod-identity-agent")
POD_ADD_ONS: tuple[AddOn, ...] = ("coredns", "aws-ebs-csi-driver")
# Add-ons whose pods call AWS: their service account and AWS's managed policy for them. Source: Amazon EKS User Guide, "AWS add-ons".
ADD_ON_ROLES: dict[AddOn, tuple[str, str]] = {
    "vpc-cni": ("aws-node", "AmazonEKS_CNI_Policy"),
    "aws-ebs-csi-driver": ("ebs-csi-controller-sa", "service-role/AmazonEBSCSIDriverPolicy"),
}
# Without this, NetworkPolicies are accepted but not enforced. Source: Amazon EKS User Guide, "Limit Pod traffic with network policies".
ADD_ON_VALUES: dict[AddOn, dict[str, str]] = {"vpc-cni": {"enableNetworkPolicy": "true"}}


class Network(Protocol):
    """The outputs of the network stack that this stack uses."""

    @property
    def vpc_id(self) -> str:
        """The VPC."""

    @property
    def vpc_cidr(self) -> str:
        """Its addresses."""

    @property
    def private_subnet_ids(self) -> tuple[str, ...]:
        """One per zone."""


@dataclass(frozen=True)
class ClusterOutputs:
    """Outputs for other stacks.

    Args:
        cluster_name: of the EKS cluster.
        cluster_arn: its ARN.
        cluster_endpoint: URL of its API server.
        cluster_ca: the API server's certificate authority, in Base64.
        node_security_group_ids: the groups of every node; EKS's own for the cluster, unless the environment names others of an existing
            one.
        oidc_issuer: URL of the issuer of its service accounts' tokens.
        oidc_provider_arn: of the same, for IAM; None: an existing cluster's owners may have none.
        configure_kubectl: the command that configures kubectl for it.
    """

    cluster_name: str
    cluster_arn: str
    cluster_endpoint: str
    cluster_ca: str
    node_security_group_ids: tuple[str, ...]
    oidc_issuer: str
    oidc_provider_arn: str | None
    configure_kubectl: str


class ClusterStack(AwsStack):
    """An EKS cluster, reachable only from within the network, unless the environment allows more, and administrated only by the principals
    that
    the environment names. An existing cluster is read; only its access entries for these principals are made.

    Args:
        scope: the app.
        environment: the environment of the stack, with a cluster.
        network: of the cluster.
    """

    def __init__(self, scope: Construct, environment: Environment, network: Network) -> None:
        super().__init__(scope, STACK, environment)
        if environment.spec.eks is None:
            raise ValueError(f"{environment.name} has no cluster")
        self._eks: Eks = environment.spec.eks
        partition = aws.data_aws_partition.DataAwsPartition(self, "partition")
        self._partition: str = partition.partition
        self._dns_suffix: str = partition.dns_suffix
        existing = self._eks.existing
        self.outputs = self._made(network) if existing is None else self._found(existing, network)
        self.export(self.outputs)

    def _made(self, network: Network) -> ClusterOutputs:
        self._subnets = list(network.private_subnet_ids)
        cluster = self._cluster(network)
        self._name: str = cluster.name
        self._administrators()
        self._nodes_and_add_ons(cluster)
        issuer = cluster.identity.get(0).oidc.get(0).issuer
        module = aws.iam_openid_connect_provider
        oidc = module.IamOpenidConnectProvider(self, "oidc", url=issuer, client_id_list=[TOKEN_AUDIENCE])
        return self._outputs(cluster, (cluster.vpc_config.cluster_security_group_id,), oidc.arn)

    def _found(self, existing: ExistingCluster, network: Network) -> ClusterOutputs:
        """A cluster that others manage: what doesn't suit is refused by each plan, also by one of cdktf or Terraform itself."""
        conditions = (
            (f'self.vpc_config[0].vpc_id == "{network.vpc_id}"', f"it is not in {network.vpc_id}, the VPC of spec.network.existing"),
            (f'self.version == "{self._eks.version}"', f"it is not of version {self._eks.version}, as spec.eks.version says"),
            (
                'self.access_config[0].authentication_mode != "CONFIG_MAP"',
                "its authentication mode has no access entries: set API_AND_CONFIG_MAP or API",
            ),
        )
        checked = [Postcondition(condition=f"${{{holds}}}", error_message=f"{existing.name}: {said}.") for holds, said in conditions]
        module = aws.data_aws_eks_cluster
        cluster = module.DataAwsEksCluster(self, "cluster", name=existing.name, lifecycle=TerraformResourceLifecycle(postcondition=checked))
        self._name = cluster.name
        self._administrators()
        own = (cluster.vpc_config.get(0).cluster_security_group_id,)
        return self._outputs(cluster, tuple(existing.security_group_ids) or own, None)

    def _cluster(self, network: Network) -> Any:
        """The control plane, with its log group created first: EKS would create one without a key and with unlimited retention."""
        name = self.environment.prefix
        logs = f"/aws/eks/{name}/cluster"
        service = logs_service(self.environment, self._dns_suffix, log_group_arn(self.environment, self._partition, logs))
        key = EncryptionKey(self, "key", self.environment, description=f"Secrets and logs of the EKS cluster {name}", services=[service])
        days = self._eks.log_retention_days
        group = aws.cloudwatch_log_group.CloudwatchLogGroup(self, "logs", name=logs, retention_in_days=days, kms_key_id=key.arn)
        role = self._cluster_role(key.arn)
        module = aws.eks_cluster
        public = self._eks.public_access_cidrs
        return module.EksCluster(
            self,
            "cluster",
            name=name,
            version=self._eks.version,
            role_arn=role.arn,
            vpc_config=module.EksClusterVpcConfig(
                subnet_ids=self._subnets,
                security_group_ids=[self._api_group(network)],
                endpoint_private_access=True,
                endpoint_public_access=bool(public),
                public_access_cidrs=public or None,
            ),
            # Otherwise the principal that creates the cluster would stay its administrator forever, without being in any document.
            access_config=module.EksClusterAccessConfig(authentication_mode="API", bootstrap_cluster_creator_admin_permissions=False),
            encryption_config=module.EksClusterEncryptionConfig(
                provider=module.EksClusterEncryptionConfigProvider(key_arn=key.arn), resources=["secrets"]
            ),
            enabled_cluster_log_types=list(LOG_TYPES),
            upgrade_policy=module.EksClusterUpgradePolicy(support_type="EXTENDED" if self._eks.extended_support else "STANDARD"),
            # The add-ons below are EKS's own; without this, each would conflict with a self-managed one.
            bootstrap_self_managed_addons=False,
            depends_on=[group, *role.policies],
        )

    def _cluster_role(self, key_arn: str) -> Role:
        """The role that EKS assumes for this cluster."""
        return Role(
            self,
            "cluster-role",
            name=f"{self.environment.prefix}-cluster",
            trusted=trust(EKS_SERVICE, of_cluster(self.environment, self._partition)),
            statements=[allow("EncryptSecrets", SECRETS_ACTIONS, [key_arn])],
            managed=[self._managed(CLUSTER_POLICY)],
        )

    def _api_group(self, network: Network) -> str:
        """Access to the API server in addition to the nodes: the VPC and the configured private ranges. No node has this group."""
        name = f"{self.environment.prefix}-api"
        group = aws.security_group.SecurityGroup(
            self, "api", name=name, description="The API server of the EKS cluster", vpc_id=network.vpc_id, tags={"Name": name}
        )
        for id, cidr in [("api-from-vpc", network.vpc_cidr), *((_from(each), each) for each in self._eks.private_access_cidrs)]:
            aws.vpc_security_group_ingress_rule.VpcSecurityGroupIngressRule(
                self,
                id,
                security_group_id=group.id,
                description="The API server of the EKS cluster",
                **({"cidr_ipv6": cidr} if ":" in cidr else {"cidr_ipv4": cidr}),
                ip_protocol="tcp",
                from_port=HTTPS,
                to_port=HTTPS,
            )
        group_id: str = group.id
        return group_id

    def _administrators(self) -> None:
        module = aws.eks_access_policy_association
        for arn in self._eks.admins:
            id = f"admin-{principal_id(arn)}"
            entry = aws.eks_access_entry.EksAccessEntry(self, id, cluster_name=self._name, principal_arn=arn, type="STANDARD")
            module.EksAccessPolicyAssociation(
                self,
                f"{id}-policy",
                cluster_name=self._name,
                principal_arn=arn,
                policy_arn=f"arn:{self._partition}:{ADMIN_POLICY}",
                access_scope=module.EksAccessPolicyAssociationAccessScope(type="cluster"),
                depends_on=[entry],
            )

    def _nodes_and_add_ons(self, cluster: Any) -> None:
        before = [self._add_on(name, ()) for name in NODE_ADD_ONS]
        nodes = SystemNodes(
            self,
            "system",
            self.environment,
            cluster=cluster,
            subnet_ids=self._subnets,
            partition=self._partition,
            dns_suffix=self._dns_suffix,
            after=before,
        )
        for name in POD_ADD_ONS:
            self._add_on(name, [nodes.group])

    def _add_on(self, name: AddOn, after: Sequence[Any]) -> Any:
        """An EKS add-on; manual changes to it in the cluster are overwritten."""
        values = ADD_ON_VALUES.get(name)
        identity = [self._add_on_identity(name)] if name in ADD_ON_ROLES else []
        return aws.eks_addon.EksAddon(
            self,
            name,
            cluster_name=self._name,
            addon_name=name,
            addon_version=self._eks.add_on_versions.get(name),
            configuration_values=json.dumps(values) if values else None,
            resolve_conflicts_on_create="OVERWRITE",
            resolve_conflicts_on_update="OVERWRITE",
            depends_on=[*after, *identity] or None,
        )

    def _add_on_identity(self, name: AddOn) -> Any:
        """The role of an add-on's pods, not shared with other pods."""
        account, policy = ADD_ON_ROLES[name]
        role = Role(
            self,
            f"{name}-role",
            name=f"{self.environment.prefix}-{name}",
            trusted=pod_identity_trust(self.environment, self._partition),
            managed=[self._managed(policy)],
        )
        module = aws.eks_pod_identity_association
        return module.EksPodIdentityAssociation(
            self,
            f"{name}-identity",
            cluster_name=self._name,
            namespace=SYSTEM_NAMESPACE,
            service_account=account,
            role_arn=role.arn,
            depends_on=role.policies,
        )

    def _managed(self, policy: str) -> str:
        return f"arn:{self._partition}:iam::aws:policy/{policy}"

    def _outputs(self, cluster: Any, node_groups: tuple[str, ...], oidc_provider_arn: str | None) -> ClusterOutputs:
        return ClusterOutputs(
            cluster_name=cluster.name,
            cluster_arn=cluster.arn,
            cluster_endpoint=cluster.endpoint,
            cluster_ca=cluster.certificate_authority.get(0).data,
            node_security_group_ids=node_groups,
            oidc_issuer=cluster.identity.get(0).oidc.get(0).issuer,
            oidc_provider_arn=oidc_provider_arn,
            configure_kubectl=f"aws eks update-kubeconfig --region {self.environment.spec.region} --name {self.environment.cluster_name}",
        )


def _from(cidr: str) -> str:
    """A construct's id that names its subject, so that adding or removing one does not move others."""
    return "api-from-" + cidr.replace(":", "_").replace(".", "-").replace("/", "-")
