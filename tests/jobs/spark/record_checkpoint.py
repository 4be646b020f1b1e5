"""Records a checkpoint of this release: ``python -m pytest -m spark -n0 tests/jobs/spark/record_checkpoint.py``.

No test of any tier: its file has no name of a test's. Run it before a change of what a checkpoint has, and name the archive after the
change that is still to come.
"""

from __future__ import annotations

import io
import tarfile

from tests.jobs.spark.recorded_checkpoints import BEFORE, FOLDER, every_state, objects, run
from tests.jobs.spark.running import Surroundings


def test_record(surroundings: Surroundings) -> None:
    run(every_state(surroundings), BEFORE)
    FOLDER.mkdir(exist_ok=True)
    with tarfile.open(FOLDER / "new.tar.gz", "w:gz") as tar:
        for name, content in objects(surroundings.s3):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
