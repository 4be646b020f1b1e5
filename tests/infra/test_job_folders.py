"""What two jobs must not share on S3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.infra.errors import InputsOverlap, OutputsOverlap
from penstock.infra.job_folders import refuse_inputs_that_begin_alike, refuse_shared_folders
from penstock.infra.plans import EnvironmentPlans, plans
from penstock.sizing.errors import PenstockError
from tests.infra.environments import read
from tests.infra.test_job_rights import spec


def two_jobs(folder: Path, first: dict[str, Any], second: dict[str, Any]) -> EnvironmentPlans:
    """An environment with two jobs that write these files."""
    for name, files in (("one", first), ("two", second)):
        spec(
            folder,
            name,
            sinks={
                "out": {"files": files},
                "errors": {"kafka": {"topic": f"{name}-e"}},
                "late": {"kafka": {"topic": f"{name}-l"}},
            },
        )
    return plans(read(folder, lambda environment: environment.update(jobs=["one.yaml", "two.yaml"])))


@pytest.mark.parametrize(("first", "second"), [("data", "data"), ("data", "data/two"), ("data/one", "data")])
def test_two_jobs_that_write_to_one_folder_are_refused_with_the_line(tmp_path: Path, first: str, second: str) -> None:
    with pytest.raises(PenstockError) as raised:
        refuse_shared_folders(two_jobs(tmp_path, {"path": first}, {"path": second}).jobs, "the-output")
    (fault,) = raised.value.errors
    assert isinstance(fault, OutputsOverlap)
    assert fault.path == "spec.sinks.out.files.path"
    assert fault.given == second
    assert f"job one writes to {first}" in fault.need
    assert fault.at is not None and fault.at.file.endswith("two.yaml") and fault.at.line


def test_folders_that_only_begin_alike_are_two(tmp_path: Path) -> None:
    refuse_shared_folders(two_jobs(tmp_path, {"path": "data"}, {"path": "data-2"}).jobs, "the-output")


def test_one_path_in_two_buckets_is_two_folders(tmp_path: Path) -> None:
    two = two_jobs(tmp_path, {"path": "data"}, {"path": "data", "bucket": "lake"}).jobs
    refuse_shared_folders(two, "the-output")
    with pytest.raises(OutputsOverlap):
        refuse_shared_folders(
            two_jobs(tmp_path, {"path": "data", "bucket": "lake"}, {"path": "data/two", "bucket": "lake"}).jobs, "the-output"
        )


def test_the_output_bucket_by_its_name_is_the_one_without(tmp_path: Path) -> None:
    with pytest.raises(OutputsOverlap):
        refuse_shared_folders(two_jobs(tmp_path, {"path": "data"}, {"path": "data", "bucket": "the-output"}).jobs, "the-output")
    with pytest.raises(InputsOverlap):
        two = reading(tmp_path, {"path": "in/a-2"}, {"path": "in/a", "bucket": "the-output"}).jobs
        refuse_inputs_that_begin_alike(two, "the-output")


def reading(folder: Path, first: dict[str, Any], second: dict[str, Any]) -> EnvironmentPlans:
    """An environment with two jobs that read these files."""
    for name, files in (("one", first), ("two", second)):
        spec(folder, name, sources={"a": {"files": files}}, local={})
    return plans(read(folder, lambda environment: environment.update(jobs=["one.yaml", "two.yaml"])))


@pytest.mark.parametrize(("first", "second"), [("in/a-2", "in/a"), ("in", "i"), ("clicks-eu/x", "clicks")])
def test_a_path_that_begins_like_the_input_of_another_job_is_refused_with_the_line(tmp_path: Path, first: str, second: str) -> None:
    with pytest.raises(PenstockError) as raised:
        refuse_inputs_that_begin_alike(reading(tmp_path, {"path": first}, {"path": second}).jobs, "the-output")
    (fault,) = raised.value.errors
    assert isinstance(fault, InputsOverlap)
    assert (fault.path, fault.given) == ("spec.sources.a.files.path", second)
    assert f"job one reads {first}" in fault.need
    assert fault.at is not None and fault.at.file.endswith("two.yaml") and fault.at.line


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"path": "in/a"}, {"path": "in/a"}),
        ({"path": "in/a"}, {"path": "in/a/b"}),
        ({"path": "in/a"}, {"path": "in/b"}),
        ({"path": "in/a"}, {"path": "in/a-2", "bucket": "the-lake"}),
    ],
    ids=["one folder", "a folder in the other", "two folders", "two buckets"],
)
def test_inputs_that_no_listing_confuses_are_taken(tmp_path: Path, first: dict[str, Any], second: dict[str, Any]) -> None:
    refuse_inputs_that_begin_alike(reading(tmp_path, first, second).jobs, "the-output")
