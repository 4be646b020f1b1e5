"""Where S3 creates a bucket."""

from __future__ import annotations

from typing import Any

# It takes no location constraint, and needs none (Amazon S3 API Reference, CreateBucket).
_NAMELESS_REGION = "us-east-1"


def location(region: str) -> dict[str, Any]:
    """The parameters of CreateBucket for a region."""
    return {} if region == _NAMELESS_REGION else {"CreateBucketConfiguration": {"LocationConstraint": region}}
