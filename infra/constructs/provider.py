"""The AWS provider of a stack."""

from __future__ import annotations

from typing import Any

from constructs import Construct

from penstock.infra.aws_bindings import aws
from penstock.infra.environment import Environment
from penstock.infra.parts.endpoints import Endpoints

# Every service that a stack asks something of. One that is missing here would be asked on AWS itself in an emulated environment; a test
# holds this against the stacks' resources.
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
    """Adds the provider to a stack. Credentials come from where the AWS SDK looks for them, never from the stack.

    Args:
        scope: the stack.
        environment: whose account, region, endpoints and tags it takes.
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
    """What an emulated AWS needs: it knows no real keys, no host name for each bucket, and no instance metadata."""
    return {
        "endpoints": [aws.provider.AwsProviderEndpoints(**{service: endpoints.of(service) for service in SERVICES})],
        "skip_credentials_validation": True,
        "skip_region_validation": True,
        "skip_metadata_api_check": "true",
        "s3_use_path_style": True,
        "max_retries": 2,
    }
