"""A stack of Helm releases on Kubernetes."""

from __future__ import annotations

from typing import Protocol

from cdktf import Fn, TerraformStack
from constructs import Construct

from penstock.infra.environment import Environment
from penstock.infra.helm_bindings import helm
from penstock.infra.state import keep_state

# The namespace of Helm's release records: it exists before and after all of Penstock's own.
RELEASES_NAMESPACE = "kube-system"


class Cluster(Protocol):
    """The outputs of the cluster stack that its clients use."""

    @property
    def cluster_name(self) -> str:
        """Name of the EKS cluster."""

    @property
    def cluster_endpoint(self) -> str:
        """URL of its API server."""

    @property
    def cluster_ca(self) -> str:
        """The API server's certificate authority, in Base64."""


class ChartsStack(TerraformStack):
    """A stack with only the Helm provider, for the environment's cluster. AWS resources come from the outputs of other stacks.

    Args:
        scope: the app.
        id: the stack's id.
        environment: the environment of the stack.
        cluster: target of the releases.
    """

    def __init__(self, scope: Construct, id: str, environment: Environment, cluster: Cluster) -> None:
        super().__init__(scope, id)
        self.environment = environment
        keep_state(self, environment)
        # A token derived from the caller's AWS credentials when Terraform runs: neither states nor plans contain credentials of the
        # cluster.
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
