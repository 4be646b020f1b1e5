"""A private S3 bucket."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cdktf import TerraformResourceLifecycle
from constructs import Construct

from penstock.infra.aws_bindings import aws
from penstock.infra.policies import Statement, document, tls_only

# An upload unfinished after this time has lost its writer, and its parts are billed like objects. Longer than any restart takes.
ABORT_UPLOADS_AFTER_DAYS = 7


class PrivateBucket(Construct):
    """A bucket: versioned, encrypted with a customer managed key, without ACLs and public access, TLS only.

    Each of its resources has the construct's id as its logical id, so that addresses are readable: ``aws_s3_bucket.checkpoints``.

    Args:
        scope: the stack.
        id: the construct's id, unique among the buckets of the stack.
        name: the bucket's name.
        key_arn: the KMS key's ARN; None: S3's own key, the only one that S3 delivers access logs with.
        protect: whether Terraform refuses to destroy it; otherwise it is destroyed with its contents.
        expire_old_versions_after_days: days, 1 or more, after which an overwritten or deleted object is removed permanently; None
            keeps it.
        expire_after_days: days after which an object is deleted, including its current version; None keeps it.
        log_to: the bucket that receives the access logs; None: no access logs.
        statements: of its policy, in addition to the one that denies requests without TLS.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        key_arn: str | None,
        protect: bool,
        expire_old_versions_after_days: int | None = None,
        expire_after_days: int | None = None,
        log_to: PrivateBucket | None = None,
        statements: Sequence[Statement] = (),
    ) -> None:
        super().__init__(scope, id)
        self._id = id
        kept = TerraformResourceLifecycle(prevent_destroy=True) if protect else None
        bucket = self._named(aws.s3_bucket.S3Bucket(self, "bucket", bucket=name, force_destroy=not protect, lifecycle=kept))
        self._bucket: str = bucket.id
        self.name: str = bucket.bucket
        self.arn: str = bucket.arn
        self._encrypt(key_arn)
        # S3 rejects concurrent changes of a bucket's access settings, and lifecycle rules on versions before versioning is enabled.
        access = self._block_public_access()
        ownership = self._disable_acls(after=access)
        self.policy = self._allow_tls_only(statements, after=ownership)
        versioning = self._version()
        self._expire(expire_old_versions_after_days, expire_after_days, after=versioning)
        if log_to is not None:
            self._log(log_to)

    def _block_public_access(self) -> Any:
        module = aws.s3_bucket_public_access_block
        return self._named(
            module.S3BucketPublicAccessBlock(
                self,
                "public-access",
                bucket=self._bucket,
                block_public_acls=True,
                block_public_policy=True,
                ignore_public_acls=True,
                restrict_public_buckets=True,
            )
        )

    def _disable_acls(self, after: Any) -> Any:
        module = aws.s3_bucket_ownership_controls
        rule = module.S3BucketOwnershipControlsRule(object_ownership="BucketOwnerEnforced")
        return self._named(module.S3BucketOwnershipControls(self, "ownership", bucket=self._bucket, rule=rule, depends_on=[after]))

    def _allow_tls_only(self, statements: Sequence[Statement], after: Any) -> Any:
        policy = document([tls_only("s3:*", [self.arn, f"{self.arn}/*"]), *statements])
        return self._named(aws.s3_bucket_policy.S3BucketPolicy(self, "policy", bucket=self._bucket, policy=policy, depends_on=[after]))

    def _log(self, to: PrivateBucket) -> None:
        """S3 rejects a log target bucket whose policy does not yet allow S3 to write."""
        module = aws.s3_bucket_logging
        prefix = f"{self._id}/"
        self._named(
            module.S3BucketLoggingA(
                self, "logging", bucket=self._bucket, target_bucket=to.name, target_prefix=prefix, depends_on=[to.policy]
            )
        )

    def _encrypt(self, key_arn: str | None) -> None:
        module = aws.s3_bucket_server_side_encryption_configuration
        how = {"sse_algorithm": "AES256"} if key_arn is None else {"sse_algorithm": "aws:kms", "kms_master_key_id": key_arn}
        default = module.S3BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultA(**how)
        # With a bucket key, S3 calls KMS once for many objects: a checkpoint writes thousands of small ones.
        rule = module.S3BucketServerSideEncryptionConfigurationRuleA(
            apply_server_side_encryption_by_default=default, bucket_key_enabled=key_arn is not None
        )
        self._named(module.S3BucketServerSideEncryptionConfigurationA(self, "encryption", bucket=self._bucket, rule=[rule]))

    def _version(self) -> Any:
        module = aws.s3_bucket_versioning
        enabled = module.S3BucketVersioningVersioningConfiguration(status="Enabled")
        return self._named(module.S3BucketVersioningA(self, "versioning", bucket=self._bucket, versioning_configuration=enabled))

    def _expire(self, old_versions_after_days: int | None, after_days: int | None, after: Any) -> None:
        module = aws.s3_bucket_lifecycle_configuration
        rules = [_abort_uploads()]
        if old_versions_after_days is not None:
            rules += _expire_old_versions(old_versions_after_days)
        if after_days is not None:
            rules.append(_rule("expire", expiration=[module.S3BucketLifecycleConfigurationRuleExpiration(days=after_days)]))
        self._named(module.S3BucketLifecycleConfiguration(self, "lifecycle", bucket=self._bucket, rule=rules, depends_on=[after]))

    def _named(self, resource: Any) -> Any:
        # Set immediately: a reference to the resource would keep the id that it had before.
        resource.override_logical_id(self._id)
        return resource


def _abort_uploads() -> Any:
    module = aws.s3_bucket_lifecycle_configuration
    abort = module.S3BucketLifecycleConfigurationRuleAbortIncompleteMultipartUpload(days_after_initiation=ABORT_UPLOADS_AFTER_DAYS)
    return _rule("abort-unfinished-uploads", abort_incomplete_multipart_upload=[abort])


def _expire_old_versions(after_days: int) -> list[Any]:
    module = aws.s3_bucket_lifecycle_configuration
    old = module.S3BucketLifecycleConfigurationRuleNoncurrentVersionExpiration(noncurrent_days=after_days)
    # A delete marker without versions only slows down listings.
    marker = module.S3BucketLifecycleConfigurationRuleExpiration(expired_object_delete_marker=True)
    return [_rule("expire-old-versions", noncurrent_version_expiration=[old]), _rule("expire-delete-markers", expiration=[marker])]


def _rule(id: str, **what: Any) -> Any:
    module = aws.s3_bucket_lifecycle_configuration
    everything = module.S3BucketLifecycleConfigurationRuleFilter(prefix="")
    return module.S3BucketLifecycleConfigurationRule(id=id, status="Enabled", filter=[everything], **what)
