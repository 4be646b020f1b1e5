from __future__ import annotations

import os
from pathlib import Path

from benchmarks.pod_memory.disk import disk_use

_MIB = 1024 * 1024


def _written(file: Path, mib: int) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    # Not zeros, of which some file systems keep none.
    file.write_bytes(os.urandom(mib * _MIB))
    return file


def test_files_count_by_what_wrote_them(tmp_path: Path) -> None:
    local = tmp_path / "local" / "spark-1" / "executor-2"
    _written(local / "spark-3" / "StateStoreId(opId=0,partId=1,name=default)-4" / "workingDir-5" / "000012.sst", 1)
    _written(local / "blockmgr-6" / "0c" / "shuffle_0_1_0.data", 2)
    _written(local / "blockmgr-6" / "0d" / "temp_local_7", 3)
    _written(tmp_path / "local" / "s3a" / "s3ablock-0001-8.tmp", 4)
    _written(tmp_path / "tmp" / "librocksdbjni.so", 5)
    log = _written(tmp_path / "logs" / "stderr", 6)
    used = disk_use([tmp_path / "local", tmp_path / "tmp"], [log])
    assert [round(value) for value in used.model_dump().values()] == [1, 2, 3, 4, 5, 6]


def test_a_snapshot_of_links_takes_no_disk_of_its_own(tmp_path: Path) -> None:
    store = tmp_path / "StateStoreId(opId=0,partId=1,name=default)-4"
    file = _written(store / "workingDir-5" / "000012.sst", 2)
    (store / "checkpoint-6").mkdir()
    os.link(file, store / "checkpoint-6" / "000012.sst")
    assert round(disk_use([tmp_path], []).state_mib) == 2


def test_the_most_of_each_kind_is_kept(tmp_path: Path) -> None:
    _written(tmp_path / "shuffle_0_1_0.data", 1)
    before = disk_use([tmp_path], [])
    (tmp_path / "shuffle_0_1_0.data").unlink()
    _written(tmp_path / "temp_local_7", 2)
    most = before.most(disk_use([tmp_path], []))
    assert (round(most.shuffle_mib), round(most.spill_mib)) == (1, 2)
