"""What takes long of the blocks' tests, with the session, the broker and the S3 of the tier spark."""

from __future__ import annotations

from tests.jobs.spark.conftest import aws, cluster, feeder, kafka, s3, session, surroundings

__all__ = ["aws", "cluster", "feeder", "kafka", "s3", "session", "surroundings"]
