"""A stack of Helm releases: the side of Kubernetes."""

from __future__ import annotations

from typing import Protocol

from cdktf import Fn, TerraformStack
from constructs import Construct

from penstock.infra.environment import Environment
from penstock.infra.helm_bindings import helm
from penstock.infra.state import keep_state

# Where Helm notes our releases: a namespace that is there before any of ours, and outlives them all.
RELEASES_NAMESPACE = "kube-system"


class Cluster(Protocol):
    """What of the cluster stack's outputs its clients need."""

    @property
    def cluster_name(self) -> str:
        """Of the EKS cluster."""

    @property
    def cluster_endpoint(self) -> str:
        """URL of its API server."""

    @property
    def cluster_ca(self) -> str:
        """The API server's certificate authority, in Base64."""


class ChartsStack(TerraformStack):
    """A stack with the Helm provider alone, for the environment's cluster; what it needs of AWS comes from other stacks' outputs.

    Args:
        scope: the app.
        id: the stack's id.
        environment: whose stack it is.
        cluster: where the releases go.
    """

    def __init__(self, scope: Construct, id: str, environment: Environment, cluster: Cluster) -> None:
        super().__init__(scope, id)
        self.environment = environment
        keep_state(self, environment)
        # A token of the caller's own AWS credentials, made when Terraform runs: nothing that opens the cluster is in a state or a plan.
        command = ["eks", "get-token", "--cluster-name", cluster.cluster_name, "--region", environment.spec.region, "--output", "json"]
        get_token = helm.provider.HelmProviderKubernetesExec(
            api_version="client.authentication.k8s.io/v1beta1", command="aws", args=command
        )
        kubernetes = helm.provider.HelmProviderKubernetes(
            host=cluster.cluster_endpoint,
            cluster_ca_certificate=Fn.base64decode(cluster.cluster_ca),
            exec=get_token,
        )
        helm.provider.HelmProvider(self, "helm", kubernetes=kubernetes)
