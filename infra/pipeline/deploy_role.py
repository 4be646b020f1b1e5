"""The AWS role of a pipeline: its trust policy and its permissions. It is created once, manually, before any stack exists.

Source: GitHub's documentation, "Configuring OpenID Connect in Amazon Web Services"; Concourse's, "The IDToken credential manager"; IAM
User Guide, "Creating a role for OpenID Connect federation".
"""

from __future__ import annotations

from penstock.infra.constructs.log_search import SERVICE_ROLE
from penstock.infra.constructs.provider import SERVICES
from penstock.infra.environment import Environment
from penstock.infra.policies import Statement, allow, deny, document
from penstock.infra.stacks.karpenter import SPOT_SERVICE
from penstock.infra.topic_rights import by_brokers, by_msk

GITHUB_ISSUER = "token.actions.githubusercontent.com"
AUDIENCE = "sts.amazonaws.com"
# Services whose resources have no region, or whose API is in another one.
_GLOBAL = ("budgets", "iam", "s3", "sts")
# IAM's names of services that the provider names differently.
_PREFIXES = {"amp": ("aps",), "appautoscaling": ("application-autoscaling",), "opensearch": ("es",)}
# Those by which a role gets permissions; AWS lets them depend on the role's permissions boundary. Source: Service Authorization Reference,
# "Actions, resources, and condition keys for AWS Identity and Access Management": iam:PermissionsBoundary.
_GRANTS = (
    "iam:AttachRolePolicy",
    "iam:CreateRole",
    "iam:DeleteRolePolicy",
    "iam:DetachRolePolicy",
    "iam:PutRolePolicy",
)
_ROLE_ACTIONS = (
    "iam:DeleteRole",
    "iam:PassRole",
    "iam:TagRole",
    "iam:UntagRole",
    "iam:UpdateAssumeRolePolicy",
    "iam:UpdateRole",
)
_PROFILE_ACTIONS = (
    "iam:AddRoleToInstanceProfile",
    "iam:CreateInstanceProfile",
    "iam:DeleteInstanceProfile",
    "iam:RemoveRoleFromInstanceProfile",
    "iam:TagInstanceProfile",
    "iam:UntagInstanceProfile",
)
# What changes a cluster that others manage; access entries and pod identities of the environment are made in it. Source: Service
# Authorization Reference, "Actions, resources, and condition keys for Amazon Elastic Kubernetes Service".
_CLUSTER_CHANGES = (
    "eks:AssociateEncryptionConfig",
    "eks:AssociateIdentityProviderConfig",
    "eks:CreateAddon",
    "eks:CreateFargateProfile",
    "eks:CreateNodegroup",
    "eks:DeleteAddon",
    "eks:DeleteCluster",
    "eks:DeleteFargateProfile",
    "eks:DeleteNodegroup",
    "eks:DisassociateIdentityProviderConfig",
    "eks:UpdateAddon",
    "eks:UpdateClusterConfig",
    "eks:UpdateClusterVersion",
    "eks:UpdateNodegroupConfig",
    "eks:UpdateNodegroupVersion",
)
_SERVICE_ROLE_ACTIONS = ("iam:DeleteServiceLinkedRole", "iam:GetServiceLinkedRoleDeletionStatus")
# Those that the stacks create, and those that EKS, its node groups, MSK and the scaling of MSK's storage create as the caller. Source: the
# chapters "Using service-linked roles" of the guides of EKS, MSK, Application Auto Scaling, OpenSearch Service and EC2.
_SERVICES_WITH_ROLES = (
    SPOT_SERVICE,
    SERVICE_ROLE,
    "eks.amazonaws.com",
    "eks-nodegroup.amazonaws.com",
    "kafka.amazonaws.com",
    "kafka.application-autoscaling.amazonaws.com",
)


def github_trust(account: str, partition: str, repository: str, environment: str) -> str:
    """The trust policy for GitHub: jobs of one repository that run in the GitHub environment with this environment's name.

    Args:
        account: its 12 digits.
        partition: of AWS, such as ``aws``.
        repository: as ``owner/name``.
        environment: of GitHub, with reviewers if a deploy requires approval.

    Returns:
        The trust policy as JSON.
    """
    return _trust(account, partition, GITHUB_ISSUER, f"repo:{repository}:environment:{environment}")


def concourse_trust(account: str, partition: str, issuer: str, subject: str) -> str:
    """The trust policy for Concourse: a job of one pipeline.

    Args:
        account: its 12 digits.
        partition: of AWS.
        issuer: the host of Concourse, such as ``ci.example.com``.
        subject: of the job's tokens, such as ``main/penstock//deploy-production``.

    Returns:
        The trust policy as JSON.
    """
    return _trust(account, partition, issuer, subject)


def permissions(environment: Environment, partition: str) -> str:
    """The permissions policy: all services that the stacks use, in the environment's region; for IAM, only roles of this environment.

    A principal that creates roles decides on their permissions, up to the environment's permissions boundary: with one it grants
    permissions to roles that have it, takes it from none, and can't change it. Source: IAM User Guide, "Permissions boundaries for IAM
    entities", "Delegating responsibility to others using permissions boundaries". Without one, only a service control policy of the
    account limits it.

    Args:
        environment: to be deployed.
        partition: of AWS.

    Returns:
        The policy as JSON.
    """
    account = environment.spec.account
    iam = f"arn:{partition}:iam::{account}"
    own = [f"{iam}:role/{environment.prefix}-*"]
    service_roles = [f"{iam}:role/aws-service-role/{service}/*" for service in _SERVICES_WITH_ROLES]
    return document(
        [
            *_services(environment.spec.region),
            *by_brokers(environment, partition),
            *by_msk(environment, partition),
            allow("OwnRoles", _ROLE_ACTIONS, own),
            _grants(own, environment.spec.permissions_boundary),
            allow("OwnInstanceProfiles", _PROFILE_ACTIONS, [f"{iam}:instance-profile/{environment.prefix}-*"]),
            allow("ServiceLinkedRoles", _SERVICE_ROLE_ACTIONS, service_roles),
            allow(
                "CreateServiceLinkedRoles",
                ["iam:CreateServiceLinkedRole"],
                service_roles,
                {"StringEquals": {"iam:AWSServiceName": list(_SERVICES_WITH_ROLES)}},
            ),
            allow("ClusterIssuer", ["iam:*OpenIDConnectProvider*"], [f"{iam}:oidc-provider/oidc.eks.*"]),
            allow("Read", ["iam:Get*", "iam:List*", "iam:SimulatePrincipalPolicy", "sts:GetCallerIdentity", "tag:GetResources"], ["*"]),
            *_cluster_of_others(environment, partition),
        ]
    )


def _trust(account: str, partition: str, issuer: str, subject: str) -> str:
    return document(
        [
            {
                "Sid": "Trust",
                "Effect": "Allow",
                "Action": ["sts:AssumeRoleWithWebIdentity"],
                "Principal": {"Federated": f"arn:{partition}:iam::{account}:oidc-provider/{issuer}"},
                "Condition": {"StringEquals": {f"{issuer}:aud": AUDIENCE, f"{issuer}:sub": subject}},
            }
        ]
    )


def _cluster_of_others(environment: Environment, partition: str) -> list[Statement]:
    """A cluster that is there already is not changed, whatever a plan says."""
    existing, spec = environment.existing_cluster, environment.spec
    if existing is None:
        return []
    place = f"arn:{partition}:eks:{spec.region}:{spec.account}"
    parts = [f"{place}:{kind}/{existing.name}/*" for kind in ("addon", "fargateprofile", "identityproviderconfig", "nodegroup")]
    return [deny("ClusterOfOthers", _CLUSTER_CHANGES, [f"{place}:cluster/{existing.name}", *parts], principal=None)]


def _grants(roles: list[str], boundary: str | None) -> Statement:
    if boundary is None:
        return allow("Grants", _GRANTS, roles)
    # A role that was created before the environment had the boundary gets it.
    actions = (*_GRANTS, "iam:PutRolePermissionsBoundary")
    return allow("Grants", actions, roles, {"StringEquals": {"iam:PermissionsBoundary": boundary}})


def _services(region: str) -> list[Statement]:
    regional = [f"{prefix}:*" for service in SERVICES if service not in _GLOBAL for prefix in _PREFIXES.get(service, (service,))]
    here = {"StringEquals": {"aws:RequestedRegion": region}}
    return [allow("Stacks", regional, ["*"], here), allow("Everywhere", ["s3:*", "budgets:*"], ["*"])]
