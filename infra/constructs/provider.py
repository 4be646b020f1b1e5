"""The AWS provider of a stack."""

from __future__ import annotations

from typing import Any

from constructs import Construct

from penstock.infra.aws_bindings import aws
from penstock.infra.environment import Environment
from penstock.infra.parts.endpoints import Endpoints

# All services that the stacks use. In an emulated environment, requests to a service that is missing here would go to AWS; a test compares
# this list with the stacks' resources.
SERVICES = (
    "amp",
    "appautoscaling",
    "budgets",
    "cloudwatch",
    "ec2",
    "ecr",
    "eks",
    "events",
    "iam",
    "kafka",
    "kms",
    "logs",
    "opensearch",
    "s3",
    "sns",
    "sqs",
    "sts",
)


def provider(scope: Construct, environment: Environment) -> None:
    """Adds the provider to a stack. Credentials come from the AWS SDK's default chain, never from the stack.

    Args:
        scope: the stack.
        environment: source of account, region, endpoints and tags.
    """
    spec = environment.spec
    aws.provider.AwsProvider(
        scope,
        "aws",
        region=spec.region,
        allowed_account_ids=[spec.account],
        default_tags=[aws.provider.AwsProviderDefaultTags(tags={"penstock:environment": environment.name, **spec.tags})],
        **(_emulated(spec.endpoints) if spec.endpoints else {}),
    )


def _emulated(endpoints: Endpoints) -> dict[str, Any]:
    """Settings for an emulated AWS, which has no real keys, no host name per bucket and no instance metadata."""
    return {
        "endpoints": [aws.provider.AwsProviderEndpoints(**{service: endpoints.of(service) for service in SERVICES})],
        "skip_credentials_validation": True,
        "skip_region_validation": True,
        "skip_metadata_api_check": "true",
        "s3_use_path_style": True,
        "max_retries": 2,
    }
