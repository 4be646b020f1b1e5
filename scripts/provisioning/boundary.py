"""The permissions boundary of an environment's roles."""

from __future__ import annotations

from botocore.exceptions import ClientError

from penstock.scripts.provisioning.aws_access import AwsAccess, code_of, translated
from penstock.scripts.provisioning.errors import BoundaryMissing

# Source: IAM API reference, GetPolicy, "Errors".
_ABSENT = "NoSuchEntity"


def check(aws: AwsAccess) -> str | None:
    """Check that the managed policy exists.

    Args:
        aws: AWS of the environment.

    Returns:
        Its ARN; None if the roles have no boundary.

    Raises:
        BoundaryMissing: DEP-023.
        PenstockError: TOOL-030, DEP-001, RUN-020 or RUN-021.
    """
    arn = aws.environment.spec.permissions_boundary
    if arn is None:
        return None
    with translated(f"{arn} in IAM"):
        try:
            aws.client("iam").get_policy(PolicyArn=arn)
        except ClientError as error:
            if code_of(error) != _ABSENT:
                raise
            need = f"a managed policy of AWS or of account {aws.environment.spec.account}, which deploys don't create"
            fault = BoundaryMissing(given=arn, need=need, fix="create it, or correct its ARN")
            raise aws.environment.locate(fault, "spec", "permissionsBoundary") from None
    return arn
