"""Start of a verb that changes AWS: prints its target."""

from __future__ import annotations

from penstock.infra.environment import Environment
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning.aws_access import AwsAccess


def introduce(environment: Environment, aws: AwsAccess, steps: Steps) -> None:
    """Verify the credentials and print account, region and environment.

    Args:
        environment: the environment.
        aws: AWS of the environment.
        steps: receives the lines.

    Raises:
        PenstockError: TOOL-030, DEP-001, DEP-002, RUN-020 or RUN-021.
    """
    spec = environment.spec
    where = f"at {spec.endpoints.aws}, an emulated AWS" if spec.endpoints else "on AWS"
    steps.title(f"environment {environment.name}, account {spec.account}, region {spec.region}, {where}")
    steps.line("caller", aws.check_account().arn)
