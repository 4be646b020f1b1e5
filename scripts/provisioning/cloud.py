"""Prerequisites of a deploy on AWS: credentials, state bucket, zones, quotas, a reachable API server; and the pods of what is deployed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from penstock.infra.plans import plans
from penstock.scripts.provisioning import (
    account_checks,
    boundary,
    charts,
    deploy_rights,
    eks_cluster,
    existing_cluster,
    existing_network,
    image_pins,
    state_bucket,
    zones,
)
from penstock.scripts.provisioning.api_server import ClusterAddress
from penstock.scripts.provisioning.aws_access import AwsAccess, Caller, translated
from penstock.scripts.provisioning.finding import OK, Finding, missing
from penstock.scripts.provisioning.stacks import synthesized
from penstock.sizing.errors import PenstockError

# Source: Service Quotas; the codes of EC2's quotas are in the documentation of spec.quotas.
_QUOTAS = (("on-demand vCPUs", "L-1216C47A", "on_demand_vcpus"), ("spot vCPUs", "L-34B43A08", "spot_vcpus"))
_SHARED = "Karpenter is there as the environment says, and names are free"


def look(aws: AwsAccess) -> list[Finding]:
    """Check the prerequisites of an environment; without valid credentials, the others are not checked.

    Args:
        aws: AWS of the environment.
    """
    first = [_checked("jobs' plans", "must be feasible to be deployed", lambda: _jobs(aws))]
    callers: list[Caller] = []

    def account() -> str:
        callers.append(aws.check_account())
        return callers[0].arn

    credentials = _checked("credentials", "of the environment's account", account)
    if not callers:
        return [*first, credentials]
    rest = [
        ("state bucket", "holds Terraform's state", lambda: _state(aws)),
        ("zones", "of the network", lambda: ", ".join(zones.check(aws)) or "the environment has no network"),
    ]
    if aws.environment.spec.permissions_boundary is not None:
        rest.append(("permissions boundary", "limits the roles of the stacks", lambda: boundary.check(aws) or ""))
    if aws.environment.own_karpenter:
        rest.append(("charts", "of Karpenter; Helm pulls them on this machine", lambda: _charts(aws)))
    if aws.environment.spec.network is not None and aws.environment.spec.network.existing is not None:
        rest.append(("existing VPC", "Karpenter launches nodes in its private subnets", lambda: existing_network.check(aws) or ""))
    if aws.environment.existing_cluster is not None:
        rest.append(("existing cluster", "jobs and their nodes run in it", lambda: _existing_cluster(aws)))
    checked = [_checked(name, purpose, ask) for name, purpose, ask in rest]
    if deploy_rights.is_simulated(aws, callers[0]):
        checked.append(_checked("rights", "of the caller, to create the stacks", lambda: _rights(aws, callers[0])))
    of_others = image_pins.look(aws.environment)
    return [*first, credentials, *checked, *of_others, *account_checks.look(aws, callers[0]), *_quotas(aws), *_cluster_findings(aws)]


def _checked(name: str, purpose: str, ask: Callable[[], str]) -> Finding:
    try:
        return Finding(name, OK, ask(), purpose)
    except PenstockError as error:
        return _failed(name, purpose, error)


def _failed(name: str, purpose: str, error: PenstockError) -> Finding:
    first, *others = error.errors
    said = "; ".join([f"{first.code}: {first.title}" + (f": {first.given}" if first.given else ""), *(other.given for other in others)])
    fixes = dict.fromkeys(" ".join(fault.fix.split()) for fault in error.errors)
    return missing(name, said=said, purpose=purpose, fix="; ".join(fixes), needed=True)


def _jobs(aws: AwsAccess) -> str:
    return ", ".join(job.name for job in plans(aws.environment).jobs) or "the environment has no jobs"


def _charts(aws: AwsAccess) -> str:
    return ", ".join(charts.check(aws.environment)) or "not applied to an emulated AWS"


def _state(aws: AwsAccess) -> str:
    state_bucket.check(aws)
    state = aws.environment.spec.state
    return state.bucket if state else "in files on this machine"


def _existing_cluster(aws: AwsAccess) -> str:
    return existing_cluster.check(aws, [job.name for job in plans(aws.environment).jobs]) or ""


def _rights(aws: AwsAccess, caller: Caller) -> str:
    """For all resources of the stacks, whichever of them are there already."""
    with TemporaryDirectory() as folder:
        stacks = [stack for stack in synthesized(aws.environment, Path(folder)) if not stack.on_kubernetes]
        resources = [(address.partition(".")[0], arguments) for stack in stacks for address, arguments in stack.resources()]
    return deploy_rights.check(aws, caller, resources)


def _cluster_findings(aws: AwsAccess) -> list[Finding]:
    """The API server and, where it is reached, the pods of the jobs."""
    address: list[ClusterAddress] = []

    def reached() -> str:
        said, found = _api_server(aws)
        address.extend([found] if found else [])
        return said

    server = _checked("API server", "charts are applied through it", reached)
    if server.state != OK or not address:
        return [server]
    shared = [] if aws.environment.existing_cluster is None else [_checked("shared cluster", _SHARED, lambda: _shared(aws))]
    return [server, *shared, *_jobs_pods(aws, address[0])]


def _shared(aws: AwsAccess) -> str:
    # The client of Kubernetes takes long to import.
    from penstock.scripts.provisioning import shared_cluster

    return shared_cluster.check(aws, list(plans(aws.environment).workloads)) or ""


def _jobs_pods(aws: AwsAccess, address: ClusterAddress) -> list[Finding]:
    # The client of Kubernetes takes long to import, and only this needs it.
    from penstock.scripts.provisioning import job_pods
    from penstock.scripts.provisioning.kubernetes_access import connected, eks_token

    try:
        with connected(address, lambda: eks_token(aws, address.name)) as api:
            return job_pods.look(api, plans(aws.environment).workloads)
    except PenstockError as error:
        return [_failed("pods of the jobs", "their drivers and executors run", error)]


def _api_server(aws: AwsAccess) -> tuple[str, ClusterAddress | None]:
    """What is said of it, and its address if it is reached."""
    address = eks_cluster.reached(aws)
    return (address, None) if isinstance(address, str) else (f"{address.endpoint} is reached", address)


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
