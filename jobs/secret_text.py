"""Texts of secrets in AWS Secrets Manager. What a secret contains appears in no error."""

from __future__ import annotations

import json
from typing import Any

from penstock.jobs.errors import SecretUnusable

_ATTEMPTS = 5


def secret_text(arn: str, path: str, need: str, client: Any = None) -> str:
    """The text of a secret.

    Args:
        arn: of the secret.
        path: what has it, for the error.
        need: what the text must be, for the error.
        client: boto3's of Secrets Manager; None: one with the credentials that the AWS SDK finds.

    Raises:
        SecretUnusable: JOB-052.
    """
    # Half a second, and most commands need no secret.
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        text: str | None = (client or _client(arn)).get_secret_value(SecretId=arn).get("SecretString")
    except (ClientError, BotoCoreError) as error:
        fix = "check the secret's ARN in the environment, and the permissions on the secret and its KMS key"
        raise SecretUnusable(path=path, given=str(error), need=f"read access to {arn}", fix=fix) from None
    if text is None:
        raise SecretUnusable(path=path, given=arn, need=f"a text secret: {need}", fix="store the secret as a string")
    return text


def fields(secret: str) -> dict[str, str] | None:
    """The secret's fields; None if it is not a JSON object. RDS writes its port as a number."""
    try:
        document = json.loads(secret)
    except ValueError:
        return None
    return {name: str(value) for name, value in document.items()} if isinstance(document, dict) else None


def _client(arn: str) -> Any:
    import boto3
    from botocore.config import Config

    # arn:aws:secretsmanager:<region>:<account>:secret:<name>
    return boto3.client("secretsmanager", region_name=arn.split(":")[3], config=Config(retries={"total_max_attempts": _ATTEMPTS}))
