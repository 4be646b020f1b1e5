"""The role that a pipeline takes on AWS: who may take it, and what it may do. It is made once, by hand, before there is any stack.

Source: GitHub's documentation, "Configuring OpenID Connect in Amazon Web Services"; Concourse's, "The IDToken credential manager"; IAM User
Guide, "Creating a role for OpenID Connect federation".
"""

from __future__ import annotations

from penstock.infra.constructs.provider import SERVICES
from penstock.infra.environment import Environment
from penstock.infra.policies import Statement, allow, document

GITHUB_ISSUER = "token.actions.githubusercontent.com"
AUDIENCE = "sts.amazonaws.com"
# Services whose resources belong to no region, or that are asked in another one.
_GLOBAL = ("budgets", "iam", "s3", "sts")
# What IAM calls the services that the provider calls otherwise.
_PREFIXES = {"amp": ("aps",), "appautoscaling": ("application-autoscaling",), "kafka": ("kafka", "kafka-cluster"), "opensearch": ("es",)}
_ROLE_ACTIONS = (
    "iam:AttachRolePolicy",
    "iam:CreateRole",
    "iam:DeleteRole",
    "iam:DeleteRolePolicy",
    "iam:DetachRolePolicy",
    "iam:PassRole",
    "iam:PutRolePolicy",
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
_SERVICE_ROLE_ACTIONS = ("iam:CreateServiceLinkedRole", "iam:DeleteServiceLinkedRole", "iam:GetServiceLinkedRoleDeletionStatus")


def github_trust(account: str, partition: str, repository: str, environment: str) -> str:
    """Who may take the role: jobs of one repository that run in the GitHub environment of this environment's name.

    Args:
        account: its 12 digits.
        partition: of AWS, as ``aws``.
        repository: as ``owner/name``.
        environment: of GitHub, which has reviewers where a deploy has to be approved.

    Returns:
        The trust policy as JSON.
    """
    return _trust(account, partition, GITHUB_ISSUER, f"repo:{repository}:environment:{environment}")


def concourse_trust(account: str, partition: str, issuer: str, subject: str) -> str:
    """Who may take the role: a job of one pipeline.

    Args:
        account: its 12 digits.
        partition: of AWS.
        issuer: the host of Concourse, as ``ci.example.com``.
        subject: of the job's tokens, as ``main/penstock//deploy-production``.

    Returns:
        The trust policy as JSON.
    """
    return _trust(account, partition, issuer, subject)


def permissions(environment: Environment, partition: str) -> str:
    """What the role may do: all of the services that the stacks use, in the environment's region; of IAM, roles of this environment alone.

    Who makes roles decides what they may do. A permissions boundary or a service control policy of the account is what holds the role
    below that.

    Args:
        environment: that is deployed.
        partition: of AWS.

    Returns:
        The policy as JSON.
    """
    account = environment.spec.account
    iam = f"arn:{partition}:iam::{account}"
    return document(
        [
            *_services(environment.spec.region),
            allow("OwnRoles", _ROLE_ACTIONS, [f"{iam}:role/{environment.prefix}-*"]),
            allow("OwnInstanceProfiles", _PROFILE_ACTIONS, [f"{iam}:instance-profile/{environment.prefix}-*"]),
            allow("ServiceLinkedRoles", _SERVICE_ROLE_ACTIONS, [f"{iam}:role/aws-service-role/*"]),
            allow("ClusterIssuer", ["iam:*OpenIDConnectProvider*"], [f"{iam}:oidc-provider/oidc.eks.*"]),
            allow("Read", ["iam:Get*", "iam:List*", "sts:GetCallerIdentity", "tag:GetResources"], ["*"]),
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


def _services(region: str) -> list[Statement]:
    regional = [f"{prefix}:*" for service in SERVICES if service not in _GLOBAL for prefix in _PREFIXES.get(service, (service,))]
    here = {"StringEquals": {"aws:RequestedRegion": region}}
    return [allow("Stacks", regional, ["*"], here), allow("Everywhere", ["s3:*", "budgets:*"], ["*"])]
