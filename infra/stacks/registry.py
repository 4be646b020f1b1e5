"""The registry stack: the registry of the jobs' image."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from cdktf import TerraformResourceLifecycle
from constructs import Construct

from penstock.infra.aws_bindings import aws
from penstock.infra.constructs.aws_stack import AwsStack
from penstock.infra.constructs.encryption_key import EncryptionKey
from penstock.infra.environment import Environment

STACK = "registry"
# Pushing an existing tag would leave such an image behind, but tags are immutable: untagged images are leftovers of failed builds.
EXPIRE_UNTAGGED_AFTER_DAYS = 7


@dataclass(frozen=True)
class RegistryOutputs:
    """Outputs for other stacks.

    Args:
        repository_url: host and name, without a tag.
        repository_arn: its ARN.
    """

    repository_url: str
    repository_arn: str


class RegistryStack(AwsStack):
    """One repository: tags are immutable, each image is scanned on push, the newest are kept.

    Args:
        scope: the app.
        environment: the environment of the images.
    """

    def __init__(self, scope: Construct, environment: Environment) -> None:
        super().__init__(scope, STACK, environment)
        key = EncryptionKey(self, "key", environment, description=f"Images of penstock {environment.name}")
        repository = self._repository(key.arn)
        module = aws.ecr_lifecycle_policy
        module.EcrLifecyclePolicy(
            self, "lifecycle", repository=repository.name, policy=lifecycle(environment.spec.registry.keep_images)
        ).override_logical_id("repository")
        aws.ecr_repository_policy.EcrRepositoryPolicy(
            self, "policy", repository=repository.name, policy=repository_policy()
        ).override_logical_id("repository")
        self.outputs = RegistryOutputs(repository_url=repository.repository_url, repository_arn=repository.arn)
        self.export(self.outputs)

    def _repository(self, key_arn: str) -> Any:
        module = aws.ecr_repository
        protect = self.environment.spec.protect
        return module.EcrRepository(
            self,
            "repository",
            name=f"{self.environment.prefix}/jobs",
            image_tag_mutability="IMMUTABLE",
            image_scanning_configuration=module.EcrRepositoryImageScanningConfiguration(scan_on_push=True),
            encryption_configuration=[module.EcrRepositoryEncryptionConfiguration(encryption_type="KMS", kms_key=key_arn)],
            force_delete=not protect,
            lifecycle=TerraformResourceLifecycle(prevent_destroy=True) if protect else None,
        )


def lifecycle(keep_images: int) -> str:
    """The lifecycle policy of the repository, as JSON.

    Args:
        keep_images: number of the newest images to keep.
    """
    untagged = {
        "tagStatus": "untagged",
        "countType": "sinceImagePushed",
        "countUnit": "days",
        "countNumber": EXPIRE_UNTAGGED_AFTER_DAYS,
    }
    newest = {"tagStatus": "any", "countType": "imageCountMoreThan", "countNumber": keep_images}
    return json.dumps(
        {
            "rules": [
                _rule(1, "what has no tag goes", untagged),
                # ECR requires the rule for any image to be last.
                _rule(2, "the newest are kept", newest),
            ]
        }
    )


def repository_policy() -> str:
    """The repository policy, as JSON: IAM policies of the account grant access; this one denies requests without TLS."""
    # ECR's policies have no Resource: they apply to the repository that they are attached to.
    statement = {
        "Sid": "TlsOnly",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "ecr:*",
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _rule(priority: int, description: str, selection: dict[str, Any]) -> dict[str, Any]:
    return {"rulePriority": priority, "description": description, "selection": selection, "action": {"type": "expire"}}
