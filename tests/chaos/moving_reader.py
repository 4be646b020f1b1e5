"""A reader of the bucket that takes the files away, as a copy job does that cleans up behind itself."""

from __future__ import annotations

import re

from tests.chaos.bucket_reader import BucketReader
from tests.chaos.killed_job import CHECKPOINTS


class MovingReader(BucketReader):
    """Deletes each file that it has read, once the job has marked it as published.

    A reader can't see the marks and waits for some seconds instead (docs/blocks/sinks.md, "Files"). Here a driver may be frozen in
    between for longer.
    """

    def _look(self) -> None:
        super()._look()
        marked = self._marked()
        for key in sorted(self._known):
            number = re.search(r"-c([0-9]+)-[0-9]+\.", key)
            if number and int(number[1]) <= marked:
                self._s3.delete_object(Bucket=self._bucket, Key=key)
                del self._known[key]

    def _marked(self) -> int:
        """The last decision whose files are known to be published."""
        folder = f"{self._path}/checkpoints/1/penstock/sinks/out/published/"
        marks = self._s3.list_objects_v2(Bucket=CHECKPOINTS, Prefix=folder).get("Contents", [])
        return max((int(item["Key"].rpartition("/")[2]) for item in marks), default=-1)
