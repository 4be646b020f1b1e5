"""Files that a job reads, written to the bucket from the local input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.jobs.local.recording import Record, Recorded
from penstock.jobs.spec import FilesSource, SpecFile
from penstock.scripts.provisioning.bucket_location import location

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# The fewest that show that a job reads several.
_FILES = 3


def source_of(spec: SpecFile, path: str) -> FilesSource | None:
    """The file source with a path; None for a topic."""
    return next((source for source in spec.job.spec.file_sources.values() if source.path == path), None)


def make_buckets(s3: S3Client, spec: SpecFile) -> None:
    """Creates the buckets that the spec names: on AWS they exist already."""
    job = spec.job.spec
    read, written = [one.bucket for one in job.file_sources.values()], [one.bucket for one in job.file_sinks.values()]
    named = {bucket for bucket in (*read, *written) if bucket is not None}
    there = {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]} if named else set()
    for name in sorted(named - there):
        s3.create_bucket(Bucket=name, **location(s3.meta.region_name))


def write(s3: S3Client, bucket: str, source: FilesSource, records: list[Record]) -> list[Recorded]:
    """Writes records as the lines of a few files.

    Returns:
        The records as a recording has them; a file counts as a partition.
    """
    extension = {"json": "json", "csv": "csv", "text": "txt"}[source.format]
    written: list[Recorded] = []
    for number in range(_FILES):
        lines = [record.value or b"" for record in records[number::_FILES]]
        s3.put_object(
            Bucket=source.bucket or bucket, Key=f"{source.path}/{number}.{extension}", Body=b"".join(line + b"\n" for line in lines)
        )
        written += [Recorded(number, offset, None, line, flush=False) for offset, line in enumerate(lines)]
    return written
