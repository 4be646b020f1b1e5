"""The stage that reads files: splits, tasks and waves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.sizing.file_splits import FilesInput, files_read
from penstock.sizing.plan import plan
from penstock.sizing.spark_settings import read_settings
from penstock.sizing.targets import ExecutorTarget, Parallelism, Targets
from penstock.sizing.units import MIB

Settings = dict[str, str]


def _read(files: int, size_mib: int, conf: Settings | None = None, *, slots: int = 4, **more: object) -> tuple[int, int, int, str]:
    """Bytes of a split in MiB, tasks, waves and what binds."""
    settings, faults = read_settings(conf or {})
    assert not faults
    asked = FilesInput.model_validate({"files": files, "size_bytes": size_mib * MIB, **more})
    read = files_read(asked, settings, slots, slots)
    return read.split_bytes // MIB, read.tasks, read.waves, read.binding


def test_large_files_are_divided_at_128_mib() -> None:
    assert _read(16, 2048) == (128, 16, 4, "maxPartitionBytes")
    # Each has a rest of 72 MiB, and no two of them fit into one partition.
    assert _read(4, 800) == (128, 8, 2, "maxPartitionBytes")


def test_small_inputs_are_divided_among_the_cores() -> None:
    assert _read(1, 100) == (26, 4, 1, "the files' share of a core")
    assert _read(3, 3) == (4, 3, 1, "openCostInBytes")


def test_small_files_share_a_partition_by_their_opening_costs() -> None:
    # 22 x (2 + 4) MiB exceed 128 MiB with the next one.
    assert _read(2200, 4400) == (128, 100, 25, "maxPartitionBytes")


def test_settings_decide() -> None:
    assert _read(16, 2048, {"spark.sql.files.maxPartitionBytes": "64m"})[:2] == (64, 32)
    assert _read(1, 100, {"spark.sql.files.minPartitionNum": "10"})[:2] == (10, 10)
    assert _read(1, 100, {"spark.sql.leafNodeDefaultParallelism": "2"})[:2] == (52, 2)
    assert _read(1, 100, {"spark.default.parallelism": "2"})[:2] == (52, 2)
    assert _read(16, 2048, {"spark.sql.files.maxPartitionNum": "5"})[1:] == (6, 2, "maxPartitionNum")


def test_a_file_that_cannot_be_divided_is_one_task() -> None:
    assert _read(3, 3072, splittable=False)[1] == 3


def test_a_limit_of_files_makes_micro_batches() -> None:
    settings, _ = read_settings({})
    read = files_read(FilesInput(files=10, size_bytes=1280 * MIB, files_per_batch=4), settings, 4, 4)
    assert (read.micro_batches, read.files_per_batch, read.tasks, read.waves) == (3, 4, 4, 1)


@given(
    files=some.integers(1, 40),
    file_kib=some.integers(1, 2000),
    most_kib=some.integers(1, 600),
    open_kib=some.integers(0, 300),
    cores=some.integers(1, 9),
    splittable=some.booleans(),
    limit=some.none() | some.integers(1, 30),
)
def test_the_tasks_are_those_of_putting_one_part_after_another_into_partitions(
    files: int, file_kib: int, most_kib: int, open_kib: int, cores: int, splittable: bool, limit: int | None
) -> None:
    conf = {"spark.sql.files.maxPartitionBytes": f"{most_kib}k", "spark.sql.files.openCostInBytes": f"{open_kib}k"}
    settings, _ = read_settings(conf | ({"spark.sql.files.maxPartitionNum": str(limit)} if limit else {}))
    asked = FilesInput(files=files, size_bytes=files * file_kib * 1024, splittable=splittable)
    read = files_read(asked, settings, cores, cores)
    length = file_kib * 1024
    step = read.split_bytes if splittable else length
    parts = sorted((min(step, length - at) for _ in range(files) for at in range(0, length, step)), reverse=True)
    tasks = _one_after_another(parts, read.split_bytes, open_kib * 1024)
    if limit and tasks > limit:
        tasks = _one_after_another(parts, -(-sum(part + open_kib * 1024 for part in parts) // limit), open_kib * 1024)
    assert (read.splits, read.tasks) == (len(parts), tasks)


def _one_after_another(parts: list[int], most: int, opening: int) -> int:
    partitions, filled = [0], 0
    for part in parts:
        if partitions[-1] and filled + part > most:
            partitions.append(0)
            filled = 0
        partitions[-1] += 1
        filled += part + opening
    return len(partitions)


def _plan(given: FilesInput | None) -> Targets:
    executor = ExecutorTarget(slots=2, cpu_millicores=2000, memory_mib=4096)
    return Targets(parallelism=Parallelism(value=4), executor=executor, trigger_s=None, files={"lines": given})


def test_the_stage_is_in_the_plan_with_its_rules() -> None:
    planned = plan(_plan(FilesInput(files=16, size_bytes=2048 * MIB)))
    assert next((stage.name, stage.kind, stage.tasks) for stage in planned.stages) == ("read lines", "files", 16)
    assert planned.files["lines"].waves == 4
    assert planned.driver_needs.batch_tasks == 20
    rules = {one.number: one for one in planned.explain}
    assert (rules["files.lines.splitBytes"].binding, rules["files.lines.tasks"].value) == ("maxPartitionBytes", 16)
    assert rules["files.lines.splitBytes"].inputs["leastPartitions"] == 4
    assert "read lines: 16 tasks run in several waves on 4 slots" in planned.notes


def test_files_that_are_not_known_are_not_planned_and_it_is_said() -> None:
    planned = plan(_plan(None))
    assert (planned.files, [stage.kind for stage in planned.stages]) == ({}, ["shuffle"])
    assert any(note.startswith("the read of lines is not planned") for note in planned.notes)


def test_files_for_fewer_tasks_than_the_parallelism_are_noted() -> None:
    planned = plan(_plan(FilesInput(files=3, size_bytes=3 * MIB)))
    assert "lines is read by 3 of 4 tasks: its files make no more partitions" in planned.notes


@pytest.mark.parametrize("size", ["0", "1x"])
def test_a_size_that_spark_refuses_is_a_fault(size: str) -> None:
    assert read_settings({"spark.sql.files.maxPartitionBytes": size})[1]
