"""The profile that a load names: a JSON or YAML file with the throughput at several numbers of slots, or one of `penstock profile`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from penstock.jobs import document
from penstock.jobs.document import Document
from penstock.jobs.errors import Contradiction, UnreadableDocument
from penstock.jobs.spec import SpecFile, job_profile
from penstock.sizing.errors import raise_all
from penstock.sizing.load.measured_job import MeasuredJob
from penstock.sizing.load.profile import Profile, ProfilePoint


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=False)


class _Point(_Part):
    slots: Annotated[int, Field(ge=1, le=32_768)]
    events_per_second: Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)]


class _ProfileFile(_Part):
    date: str = ""
    source: str = ""
    points: Annotated[list[_Point], Field(min_length=1, max_length=1000)]


class ReadProfile(NamedTuple):
    """What a profile says: either of the two, and what else the reader should know.

    Args:
        points: throughput at numbers of slots.
        measured: by `penstock profile`.
        changes: what of the job has changed since it was measured.
        notes: sentences for the plan.
    """

    points: Profile | None = None
    measured: MeasuredJob | None = None
    changes: tuple[job_profile.Change, ...] = ()
    notes: tuple[str, ...] = ()


def read(spec_file: SpecFile, name: str, app_path: Sequence[Path] = ()) -> ReadProfile:
    """Reads the profile that a spec names. One of another version of the job has a note: a job can be deployed before it is measured again.

    Args:
        spec_file: the spec; the name is relative to its folder.
        name: file name in the spec.
        app_path: folders of the app besides that of the spec.

    Raises:
        PenstockError: SPEC-001 with the place in the spec for a file that can't be read, SPEC-002 to SPEC-008, PROF-001 and PROF-002 with
            the place in the file.
    """
    path = spec_file.path.parent / name
    try:
        content = document.read(path)
    except UnreadableDocument as error:
        fault = UnreadableDocument(need=f"{error.need}: {path}", fix="check the name; it is relative to the spec")
        raise spec_file.document.locate(fault, ("spec", "load", "profile")) from None
    if not job_profile.is_profile(content):
        return ReadProfile(points=_points(content))
    profile = job_profile.parsed(content)
    job_profile.refuse_another_job(profile, content, spec_file)
    changed = job_profile.changes_since(profile, spec_file, app_path)
    return ReadProfile(measured=profile.measured, changes=changed, notes=(_outdated(name, profile, changed),) if changed else ())


def given(spec_file: SpecFile, path: Path, app_path: Sequence[Path] = ()) -> ReadProfile:
    """Reads a profile in place of what the spec says, of this job as it is.

    Args:
        spec_file: the spec.
        path: of the file.
        app_path: folders of the app besides that of the spec.

    Raises:
        PenstockError: SPEC-001 to SPEC-008, PROF-001 to PROF-003.
    """
    content = document.read(path)
    profile = job_profile.parsed(content)
    job_profile.refuse_another_job(profile, content, spec_file)
    job_profile.refuse_another_version(profile, content, spec_file, app_path)
    return ReadProfile(measured=profile.measured)


def _outdated(name: str, profile: job_profile.JobProfile, changed: Sequence[str]) -> str:
    since = f" since {profile.measured.date}" if profile.measured.date else ""
    return f"the profile {name} is of another version of the job: its {' and '.join(changed)} changed{since}; measure it again"


def _points(content: Document) -> Profile:
    parsed = content.parse(_ProfileFile)
    _refuse_disorder(content, parsed)
    points = tuple(ProfilePoint(slots=point.slots, events_per_second=point.events_per_second) for point in parsed.points)
    return Profile(date=parsed.date, source=parsed.source, points=points)


def _refuse_disorder(content: Document, parsed: _ProfileFile) -> None:
    faults = [
        content.locate(
            Contradiction(need=f"more slots than the previous point: {before.slots}", fix="sort the points"), ("points", at, "slots")
        )
        for at, (before, after) in enumerate(pairwise(parsed.points), start=1)
        if after.slots <= before.slots
    ]
    raise_all(faults)
