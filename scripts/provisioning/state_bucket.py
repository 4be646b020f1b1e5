"""Bucket of Terraform's state: creation, correction of its settings, and the check before it is used."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from penstock.infra.environment import Environment
from penstock.infra.environment_file import argument_of
from penstock.scripts.provisioning.aws_access import AwsAccess, code_of, translated
from penstock.scripts.provisioning.bucket_location import location
from penstock.scripts.provisioning.errors import BucketOfAnother, StateBucketMissing, StatePlaceUnfit

# A state is a few hundred KiB and is written at each apply; old versions are for recovery, not forever.
EXPIRE_OLD_STATES_AFTER_DAYS = 90
ABORT_UPLOADS_AFTER_DAYS = 7
_NOT_SET = {
    "ServerSideEncryptionConfigurationNotFoundError",
    "NoSuchPublicAccessBlockConfiguration",
    "OwnershipControlsNotFoundError",
    "NoSuchBucketPolicy",
    "NoSuchLifecycleConfiguration",
    "NoSuchTagSet",
}
_ENCRYPTION = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
_PRIVATE = dict.fromkeys(("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"), True)


@dataclass(frozen=True)
class Setting:
    """A required setting of the bucket.

    Args:
        name: display name.
        now: returns the current value; None if unset.
        wanted: returns the required value for the current one.
        put: sets the value.
    """

    name: str
    now: Callable[[], Any]
    wanted: Callable[[Any], Any]
    put: Callable[[Any], object]


@dataclass(frozen=True)
class Bootstrapped:
    """What was changed.

    Args:
        bucket: the bucket's name.
        created: whether the bucket is new.
        corrected: names of corrected settings of an existing bucket.
    """

    bucket: str
    created: bool
    corrected: tuple[str, ...]

    def __str__(self) -> str:
        if self.created:
            return f"{self.bucket} created: private, versioned, encrypted, TLS only"
        return f"{self.bucket} exists; " + (f"corrected: {', '.join(self.corrected)}" if self.corrected else "no changes")


def name(environment: Environment) -> str:
    """The bucket's name.

    Raises:
        StatePlaceUnfit: DEP-014, the state is in local files.
    """
    if environment.spec.state is None:
        fix = "add spec.state.bucket to the environment file"
        fault = StatePlaceUnfit(given=environment.name, need="the bucket name for Terraform's state", fix=fix)
        raise environment.locate(fault, "spec", "state")
    return environment.spec.state.bucket


def bootstrap(aws: AwsAccess) -> Bootstrapped:
    """Create the bucket, or correct its settings; idempotent.

    Args:
        aws: AWS of the environment, with verified credentials.

    Raises:
        BucketOfAnother: DEP-004.
        StatePlaceUnfit: DEP-014.
        PenstockError: TOOL-030, DEP-001, RUN-020 or RUN-021.
    """
    bucket = name(aws.environment)
    s3 = aws.client("s3")
    with translated(f"bucket {bucket}"):
        created = not _exists(s3, aws.environment, bucket)
        if created:
            _create(s3, aws.environment, bucket)
        corrected = tuple(setting.name for setting in _settings(s3, aws.environment, bucket) if _hold(setting))
    return Bootstrapped(bucket, created, () if created else corrected)


def check(aws: AwsAccess) -> None:
    """Check that the state bucket exists in the environment's account; a state in local files needs none.

    Raises:
        StateBucketMissing: DEP-003.
        BucketOfAnother: DEP-004.
        PenstockError: TOOL-030, DEP-001, RUN-020 or RUN-021.
    """
    state = aws.environment.spec.state
    if state is None:
        return
    with translated(f"bucket {state.bucket}"):
        exists = _exists(aws.client("s3"), aws.environment, state.bucket)
    if not exists:
        fix = f"penstock bootstrap {argument_of(aws.environment)}"
        fault = StateBucketMissing(given=state.bucket, need="the bucket for Terraform's state", fix=fix)
        raise aws.environment.locate(fault, "spec", "state", "bucket")


def _exists(s3: Any, environment: Environment, bucket: str) -> bool:
    try:
        said = s3.head_bucket(Bucket=bucket, ExpectedBucketOwner=environment.spec.account)
    except ClientError as error:
        if code_of(error) in ("404", "NoSuchBucket"):
            return False
        if code_of(error) in ("403", "301", "AccessDenied"):
            raise _of_another(environment, bucket, f"S3 returns {code_of(error)}") from None
        raise
    region = said.get("BucketRegion") or environment.spec.region
    if region != environment.spec.region:
        raise _of_another(environment, bucket, f"it is in {region}")
    return True


def _create(s3: Any, environment: Environment, bucket: str) -> None:
    region = environment.spec.region
    try:
        s3.create_bucket(Bucket=bucket, **location(region))
    except ClientError as error:
        if code_of(error) == "BucketAlreadyExists":
            raise _of_another(environment, bucket, "S3 returns BucketAlreadyExists") from None
        if code_of(error) != "BucketAlreadyOwnedByYou":
            raise


def _of_another(environment: Environment, bucket: str, given: str) -> BucketOfAnother:
    need = f"a bucket of account {environment.spec.account} in {environment.spec.region} that these credentials can access"
    fault = BucketOfAnother(given=f"{bucket}: {given}", need=need, fix="use another name, or check the permissions")
    return environment.locate(fault, "spec", "state", "bucket")


def _hold(setting: Setting) -> bool:
    """Correct a setting and return whether it was different."""
    now = _asked(setting.now)
    wanted = setting.wanted(now)
    if now == wanted:
        return False
    setting.put(wanted)
    return True


def _asked(now: Callable[[], Any]) -> Any:
    try:
        return now()
    except ClientError as error:
        if code_of(error) in _NOT_SET:
            return None
        raise


def _settings(s3: Any, environment: Environment, bucket: str) -> Sequence[Setting]:
    it = {"Bucket": bucket}
    rules = {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    return (
        # Access restrictions first.
        Setting(
            "public access",
            lambda: s3.get_public_access_block(**it)["PublicAccessBlockConfiguration"],
            lambda now: _PRIVATE,
            lambda wanted: s3.put_public_access_block(**it, PublicAccessBlockConfiguration=wanted),
        ),
        Setting(
            "ownership of objects",
            lambda: {"Rules": s3.get_bucket_ownership_controls(**it)["OwnershipControls"]["Rules"]},
            lambda now: rules,
            lambda wanted: s3.put_bucket_ownership_controls(**it, OwnershipControls=wanted),
        ),
        Setting(
            "versions",
            lambda: s3.get_bucket_versioning(**it).get("Status"),
            lambda now: "Enabled",
            lambda wanted: s3.put_bucket_versioning(**it, VersioningConfiguration={"Status": wanted}),
        ),
        Setting(
            "encryption",
            lambda: _encryption(s3.get_bucket_encryption(**it)),
            lambda now: now or [_ENCRYPTION],
            lambda wanted: s3.put_bucket_encryption(**it, ServerSideEncryptionConfiguration={"Rules": wanted}),
        ),
        Setting(
            "TLS-only policy",
            lambda: json.loads(s3.get_bucket_policy(**it)["Policy"]),
            lambda now: _policy(now, environment, bucket),
            lambda wanted: s3.put_bucket_policy(**it, Policy=json.dumps(wanted)),
        ),
        Setting(
            "lifecycle",
            lambda: s3.get_bucket_lifecycle_configuration(**it)["Rules"],
            _lifecycle,
            lambda wanted: s3.put_bucket_lifecycle_configuration(**it, LifecycleConfiguration={"Rules": wanted}),
        ),
        Setting(
            "tags",
            lambda: {tag["Key"]: tag["Value"] for tag in s3.get_bucket_tagging(**it)["TagSet"]},
            lambda now: {**(now or {}), "penstock:state": "terraform", **environment.spec.tags},
            lambda wanted: s3.put_bucket_tagging(**it, Tagging={"TagSet": [{"Key": key, "Value": value} for key, value in wanted.items()]}),
        ),
    )


def _encryption(said: Mapping[str, Any]) -> Any:
    """Encryption rules of the bucket; a key chosen by the team is kept."""
    return said["ServerSideEncryptionConfiguration"]["Rules"]


def _policy(now: Mapping[str, Any] | None, environment: Environment, bucket: str) -> dict[str, Any]:
    """The bucket's policy with the required statement; the team's own statements are kept."""
    partition = "aws-cn" if environment.spec.region.startswith("cn-") else "aws-us-gov" if "-gov-" in environment.spec.region else "aws"
    arn = f"arn:{partition}:s3:::{bucket}"
    tls_only = {
        "Sid": "TlsOnly",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [arn, f"{arn}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    statements = (now or {}).get("Statement", [])
    others = [statement for statement in _listed(statements) if statement.get("Sid") != "TlsOnly"]
    ours = next((statement for statement in _listed(statements) if statement == tls_only), None)
    return dict(now) if now and ours else {"Version": "2012-10-17", "Statement": [*others, tls_only]}


def _listed(statements: Any) -> list[Mapping[str, Any]]:
    return [statements] if isinstance(statements, Mapping) else list(statements)


def _lifecycle(now: Sequence[Mapping[str, Any]] | None) -> list[Mapping[str, Any]]:
    """Lifecycle rules with the required one; the team's own rules are kept."""
    ours: list[Mapping[str, Any]] = [
        {
            "ID": "expire-old-states",
            "Status": "Enabled",
            "Filter": {"Prefix": ""},
            "NoncurrentVersionExpiration": {"NoncurrentDays": EXPIRE_OLD_STATES_AFTER_DAYS},
        },
        {
            "ID": "abort-unfinished-uploads",
            "Status": "Enabled",
            "Filter": {"Prefix": ""},
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": ABORT_UPLOADS_AFTER_DAYS},
        },
    ]
    kept = list(now or [])
    missing = [rule for rule in ours if rule not in kept]
    names = {rule["ID"] for rule in missing}
    return [*(rule for rule in kept if rule.get("ID") not in names), *missing]
