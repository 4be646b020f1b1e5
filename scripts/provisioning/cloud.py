"""Prerequisites of a deploy on AWS: credentials, state bucket, zones, quotas, a reachable API server."""

from __future__ import annotations

from collections.abc import Callable

from botocore.exceptions import ClientError

from penstock.infra.plans import plans
from penstock.scripts.provisioning import state_bucket, zones
from penstock.scripts.provisioning.api_server import cluster_address, reach
from penstock.scripts.provisioning.aws_access import AwsAccess, code_of, translated
from penstock.scripts.provisioning.finding import OK, Finding, missing
from penstock.sizing.errors import PenstockError

# Source: Service Quotas; the codes of EC2's quotas are in the documentation of spec.quotas.
_QUOTAS = (("on-demand vCPUs", "L-1216C47A", "on_demand_vcpus"), ("spot vCPUs", "L-34B43A08", "spot_vcpus"))


def look(aws: AwsAccess) -> list[Finding]:
    """Check the prerequisites of an environment; without valid credentials, the others are not checked.

    Args:
        aws: AWS of the environment.
    """
    first = [_checked("jobs' plans", "must be feasible to be deployed", lambda: _jobs(aws))]
    caller = _checked("credentials", "of the environment's account", lambda: aws.check_account().arn)
    if caller.state != OK:
        return [*first, caller]
    rest = (
        ("state bucket", "holds Terraform's state", lambda: _state(aws)),
        ("zones", "of the network", lambda: ", ".join(zones.check(aws)) or "the environment has no network"),
        ("API server", "charts are applied through it", lambda: _api_server(aws)),
    )
    return [*first, caller, *(_checked(name, purpose, ask) for name, purpose, ask in rest), *_quotas(aws)]


def _checked(name: str, purpose: str, ask: Callable[[], str]) -> Finding:
    try:
        return Finding(name, OK, ask(), purpose)
    except PenstockError as error:
        first = error.errors[0]
        said = f"{first.code}: {first.title}" + (f": {first.given}" if first.given else "")
        return missing(name, said=said, purpose=purpose, fix=" ".join(first.fix.split()), needed=True)


def _jobs(aws: AwsAccess) -> str:
    return ", ".join(job.name for job in plans(aws.environment).jobs) or "the environment has no jobs"


def _state(aws: AwsAccess) -> str:
    state_bucket.check(aws)
    state = aws.environment.spec.state
    return state.bucket if state else "in files on this machine"


def _api_server(aws: AwsAccess) -> str:
    spec = aws.environment.spec
    if spec.eks is None or spec.endpoints is not None:
        return "the environment has no cluster" if spec.eks is None else "an emulated cluster has none"
    with translated(f"EKS in {spec.region}"):
        try:
            cluster = aws.client("eks").describe_cluster(name=aws.environment.prefix)["cluster"]
        except ClientError as error:
            if code_of(error) == "ResourceNotFoundException":
                return "the cluster does not exist yet"
            raise
    authority = cluster.get("certificateAuthority", {}).get("data")
    address = cluster_address({"cluster_name": cluster["name"], "cluster_endpoint": cluster.get("endpoint"), "cluster_ca": authority})
    if address is None:
        return f"the cluster is {cluster.get('status', 'not ready')}"
    reach(address, aws.environment)
    return f"{address.endpoint} is reached"


def _quotas(aws: AwsAccess) -> list[Finding]:
    """The quotas that the plans are compared with, as set in AWS; an emulated AWS has none."""
    if aws.environment.spec.endpoints is not None or aws.environment.spec.eks is None:
        return []
    return [_quota(aws, name, code, getattr(aws.environment.spec.quotas, field)) for name, code, field in _QUOTAS]


def _quota(aws: AwsAccess, name: str, code: str, stated: int | None) -> Finding:
    purpose = f"quota {code}; plans are checked against spec.quotas"
    try:
        with translated("Service Quotas"):
            value = int(aws.client("service-quotas").get_service_quota(ServiceCode="ec2", QuotaCode=code)["Quota"]["Value"])
    except PenstockError as error:
        return missing(name, said=f"{error.code}: {error.given}", purpose=purpose, fix="allow servicequotas:GetServiceQuota", needed=False)
    if stated is not None and value < stated:
        said = f"{value}, below the {stated} of spec.quotas"
        return missing(name, said=said, purpose=purpose, fix="request an increase from AWS, or correct spec.quotas", needed=True)
    return Finding(name, OK, str(value) + ("" if stated is not None else "; not set in spec.quotas"), purpose)
