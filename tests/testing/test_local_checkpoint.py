from __future__ import annotations

from pathlib import Path

from penstock.jobs.storage.checkpoint import BEFORE_THE_FIRST, BatchRecord
from penstock.testing.local_checkpoint import LocalCheckpoint


def _commit(checkpoint: LocalCheckpoint, folder: Path, number: int) -> None:
    """As the driver and Spark do, with the checksum that Hadoop writes beside each local file."""
    checkpoint.record(BatchRecord(batch=number, token=checkpoint.token, rows_in={"clicks": number}))
    (folder / "commits").mkdir(parents=True, exist_ok=True)
    (folder / f"commits/{number}").touch()
    (folder / f"commits/.{number}.crc").touch()


def test_it_goes_on_after_the_last_committed_micro_batch(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    checkpoint = LocalCheckpoint(folder)
    assert checkpoint.last_record() == BEFORE_THE_FIRST
    _commit(checkpoint, folder, 0)
    _commit(checkpoint, folder, 1)
    # A record without a commit is of a micro-batch that runs again, and replaces it.
    checkpoint.record(BatchRecord(batch=2, token=1, rows_in={"clicks": 7}))
    checkpoint.record(BatchRecord(batch=2, token=1, rows_in={"clicks": 8}))
    assert LocalCheckpoint(folder).last_record().rows_in == {"clicks": 1}
    _commit(checkpoint, folder, 2)
    assert LocalCheckpoint(folder).last_record().rows_in == {"clicks": 2}


def test_its_identity_is_written_once_and_its_queries_are_below_it(tmp_path: Path) -> None:
    checkpoint = LocalCheckpoint(tmp_path)
    assert checkpoint.identity() == LocalCheckpoint(tmp_path).identity()
    assert checkpoint.of_query("") is checkpoint
    assert checkpoint.queries() == []
    checkpoint.of_query("counts").put_once("aside/1/1/run/0-0-0.json", "{}")
    assert checkpoint.queries() == ["counts"]
    query = LocalCheckpoint(tmp_path / "queries/counts")
    assert query.names("aside/") == ["1/1/run/0-0-0.json"]
    query.delete_all(["aside/1/1/run/0-0-0.json", "aside/none.json"])
    assert query.names("aside/") == []
    assert checkpoint.content("penstock/identity") is not None
