"""The cluster of an environment, as EKS knows it."""

from __future__ import annotations

from botocore.exceptions import ClientError

from penstock.scripts.provisioning.api_server import ClusterAddress, cluster_address, reach
from penstock.scripts.provisioning.aws_access import AwsAccess, code_of, translated


def reached(aws: AwsAccess) -> ClusterAddress | str:
    """The address of the cluster's API server, which answers; or why there is none.

    Args:
        aws: AWS of the environment.

    Raises:
        ApiServerNotReached: DEP-007.
        PenstockError: TOOL-030, DEP-001, RUN-020 or RUN-021.
    """
    spec = aws.environment.spec
    if spec.eks is None or spec.endpoints is not None:
        return "the environment has no cluster" if spec.eks is None else "an emulated cluster has none"
    with translated(f"EKS in {spec.region}"):
        try:
            cluster = aws.client("eks").describe_cluster(name=aws.environment.cluster_name)["cluster"]
        except ClientError as error:
            if code_of(error) == "ResourceNotFoundException":
                return "the cluster does not exist yet"
            raise
    authority = cluster.get("certificateAuthority", {}).get("data")
    address = cluster_address({"cluster_name": cluster["name"], "cluster_endpoint": cluster.get("endpoint"), "cluster_ca": authority})
    if address is None:
        return f"the cluster is {cluster.get('status', 'not ready')}"
    reach(address, aws.environment)
    return address
