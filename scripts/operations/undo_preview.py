"""What the undo of a rewind means, before it is done."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from penstock.jobs.spec import JobSpec
from penstock.jobs.storage.checkpoint import BatchRecord
from penstock.jobs.storage.generation import Generation
from penstock.scripts.operations.job_records import JobRecords
from penstock.scripts.operations.rewind_preview import sinks_table
from penstock.scripts.render.screen import Screen
from penstock.scripts.render.table import facts


def undo_lines(spec: JobSpec, records: JobRecords, newest: Generation, back: Generation, screen: Screen) -> Iterator[str]:
    """The lines of it.

    Args:
        spec: the job's.
        records: in its folder.
        newest: the generation that runs.
        back: the one whose checkpoint goes on.
        screen: where they go.

    Raises:
        CheckpointDamaged: JOB-008.
        BucketUnreachable: JOB-009.
    """
    yield f"checkpoint {back.checkpoint} of generation {back.number} goes on with its state, as generation {newest.number + 1}"
    yield ""
    told = [(f"query {name}" if name else "goes on", _after(last)) for name, last in records.last_micro_batches(back)]
    again = "the records since then that the rewound generation has read, too: its rows of them are written twice"
    yield from facts([*told, ("read again", again), ("checkpoint", f"{newest.checkpoint} stays where it is")], screen)
    yield ""
    yield from sinks_table(spec, screen)


def _after(last: BatchRecord) -> str:
    if last.batch < 0:
        return "before its first micro-batch"
    began = datetime.fromtimestamp(last.time_ms / 1000, UTC)
    return f"after micro-batch {last.batch} of {began:%Y-%m-%d %H:%M:%S} UTC, and {sum(last.total_rows_in.values()):,} records"
