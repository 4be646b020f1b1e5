"""The base of an environment's parts: strict models, and quantities in human-readable form."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_camel

from penstock.sizing.units import cpu_millicores, duration_ms, memory_mib

# Source: Kubernetes, object names: RFC 1123 labels.
LABEL_NAME = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
# Source: IAM User Guide, "IAM ARNs": the account is empty for some services' own policies.
ARN_PATTERN = r"^arn:aws(-[a-z]+)*:[a-z0-9-]+:[a-z0-9-]*:([0-9]{12})?:.+$"
EMAIL_PATTERN = r"^[^@\s]+@[^@\s]+\.[^@\s]+$"


def _millicores(value: object) -> int:
    """A DaemonSet may request 0, a pod of a job may not."""
    return 0 if value in (0, "0") else cpu_millicores(value)


def _mib(value: object) -> int:
    return 0 if value in (0, "0") else memory_mib(value)


def _duration_or_never(value: object) -> object:
    return value if value == "Never" else duration_ms(value)


def _as_duration(ms: int | str) -> str:
    return ms if isinstance(ms, str) else f"{ms}ms"


# Serialized as they are parsed, so that an environment's text can be read back.
Millicores = Annotated[int, BeforeValidator(_millicores), PlainSerializer(lambda millicores: f"{millicores}m" if millicores else "0")]
MemoryMib = Annotated[int, BeforeValidator(_mib), PlainSerializer(lambda mib: f"{mib}m" if mib else "0")]
DurationMs = Annotated[int, BeforeValidator(duration_ms), PlainSerializer(_as_duration)]
DurationMsOrNever = Annotated[int | Literal["Never"], BeforeValidator(_duration_or_never), PlainSerializer(_as_duration)]
# Retention periods that CloudWatch Logs accepts, in days. Source: CloudWatch Logs API reference, PutRetentionPolicy.
RetentionDays = Literal[1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653]
Arn = Annotated[str, Field(pattern=ARN_PATTERN)]
# Source: AWS Secrets Manager API reference, GetSecretValue: the whole ARN, with the six characters that AWS appends to the name.
SECRET_PATTERN = r"^arn:aws(-[a-z]+)*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]+-[A-Za-z0-9]{6}$"
SecretArn = Annotated[str, Field(pattern=SECRET_PATTERN)]
# Source: Amazon MSK Developer Guide, "Create authorization policies for the IAM role": the ARN of a cluster.
MSK_PATTERN = r"^arn:aws(-[a-z]+)*:kafka:[a-z0-9-]+:[0-9]{12}:cluster/[A-Za-z0-9-]+/[A-Za-z0-9-]+$"
MskArn = Annotated[str, Field(pattern=MSK_PATTERN)]
Email = Annotated[str, Field(pattern=EMAIL_PATTERN)]


class Part(BaseModel):
    """A part of an environment: strict, frozen, camelCase in YAML."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=False)
