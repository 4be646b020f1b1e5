"""A reader of the bucket that looks all the time, as a query engine or a copy job would, and keeps what it saw."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# The emulator answers one request at a time; the job has to come through too.
PAUSE_S = 0.05


class BucketReader:
    """Reads each file once, when it first sees it.

    Args:
        s3: a client.
        bucket: name of the bucket.
        path: below which the files lie.
        field: of a row, by which it is known.
        pause_s: between two looks.
    """

    def __init__(self, s3: S3Client, bucket: str, path: str, field: str, pause_s: float = PAUSE_S) -> None:
        self.rows: Counter[str] = Counter()
        self.last: dict[str, Mapping[str, Any]] = {}
        self.faults: list[str] = []
        self.looks = 0
        self._s3, self._bucket, self._path, self._field = s3, bucket, path, field
        self._pause_s = pause_s
        self._known: dict[str, tuple[object, ...]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> BucketReader:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stops; what is there at the end has been looked at once more."""
        self._stop.set()
        self._thread.join()

    def _read(self) -> None:
        try:
            while not self._stop.wait(self._pause_s):
                self._look()
            self._look()
        except Exception as error:
            self.faults.append(f"the reader failed: {error!r}")

    def _look(self) -> None:
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=f"{self._path}/")
        result = {item["Key"]: (item["ETag"], item["Size"], item["LastModified"]) for page in pages for item in page.get("Contents", [])}
        self.faults.extend(f"{key} is gone" for key in self._known.keys() - result.keys())
        self.faults.extend(f"{key} has changed" for key in self._known.keys() & result.keys() if self._known[key] != result[key])
        for key in result.keys() - self._known.keys():
            self._take(key)
        self._known = {**result}
        self.looks += 1

    def _take(self, key: str) -> None:
        body = self._s3.get_object(Bucket=self._bucket, Key=key)["Body"].read()
        if not body.endswith(b"\n"):
            self.faults.append(f"{key} ends in the midst of a line")
        for line in body.splitlines():
            fields = json.loads(line)
            row = fields[self._field]
            self.last[row] = fields
            self.rows[row] += 1
            if self.rows[row] == 2:
                self.faults.append(f"row {row} was seen twice, the second time in {key}")
