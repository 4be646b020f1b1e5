"""What drivers leave in a job's folder: generations, and micro-batches that are committed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from penstock.jobs.storage.checkpoint import BatchRecord, Checkpoint
from penstock.jobs.storage.generation import Fingerprint, Generation, Versions
from penstock.jobs.storage.query_record import QueryRecord

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

WHAT = Fingerprint(app="a", spec="s", plan="p", image="i")


def generation(number: int = 1, *, queries: Mapping[str, QueryRecord] | None = None, **other: Any) -> Generation:
    """A generation that has begun.

    Args:
        number: of it, and of its checkpoint if that is not among the others.
        queries: by default one that reads the source ``a`` and has no state.
        other: fields of it.
    """
    fields = {
        "checkpoint": number,
        "parent": None,
        "mode": "last-state",
        "began": datetime.now(UTC),
        "fingerprint": WHAT,
        "versions": Versions(penstock=None, spark="4.3.0"),
        "queries": {"": QueryRecord.of(["a"], [])} if queries is None else queries,
    }
    return Generation.model_validate({"number": number, **fields, **other})


def commit(s3: S3Client, checkpoint: Checkpoint, record: BatchRecord) -> None:
    """Records a micro-batch, and commits it as Spark does."""
    checkpoint.record(record)
    bucket, _, folder = checkpoint.uri.removeprefix("s3a://").partition("/")
    s3.put_object(Bucket=bucket, Key=f"{folder}/commits/{record.batch}", Body=b"v1\n{}")
