from __future__ import annotations

from pathlib import Path

import pytest

from penstock.jobs.document import read
from penstock.jobs.spec.job_profile import JobProfile, parsed
from penstock.scripts.profiling.errors import ProfileNotWritten
from penstock.scripts.profiling.profile_file import ProfileFile
from tests.jobs.spec.measured_profiles import profile_of

SPEC = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec: {app: app, parallelism: 1, executor: {slots: 1, memory: 2g}, sources: {a: {kafka: {topic: a}}}}
"""


@pytest.fixture
def profile(tmp_path: Path) -> JobProfile:
    (tmp_path / "clicks.yaml").write_text(SPEC)
    return profile_of(tmp_path / "clicks.yaml")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def test_a_profile_is_read_as_it_was_written(profile: JobProfile, folder: Path) -> None:
    with ProfileFile(folder / "clicks.json") as file:
        file.write(profile)
    assert parsed(read(folder / "clicks.json")) == profile
    assert [one.name for one in folder.iterdir()] == ["clicks.json"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interrupted_measurement_leaves_what_was_there(profile: JobProfile, folder: Path, error: type[BaseException]) -> None:
    (folder / "clicks.json").write_text("earlier")
    with pytest.raises(error), ProfileFile(folder / "clicks.json") as file:
        file.write(profile)
        raise error
    assert [(one.name, one.read_text()) for one in folder.iterdir()] == [("clicks.json", "earlier")]


def test_a_folder_that_is_not_there_is_reported_before_anything_is_measured(folder: Path) -> None:
    with pytest.raises(ProfileNotWritten) as caught, ProfileFile(folder / "nowhere" / "clicks.json"):
        raise AssertionError("it was measured")
    assert caught.value.given == "No such file or directory"
