"""A measured profile: a JSON or YAML file beside a spec with the throughput at several numbers of slots."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from penstock.jobs import document
from penstock.jobs.document import Document
from penstock.jobs.errors import Contradiction, UnreadableDocument
from penstock.jobs.spec import SpecFile
from penstock.sizing.errors import raise_all
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


def read(spec_file: SpecFile, name: str) -> Profile:
    """Reads the profile that a spec names.

    Args:
        spec_file: the spec; the name is relative to its folder.
        name: file name in the spec.

    Raises:
        PenstockError: SPEC-001 with the place in the spec for a file that can't be read, SPEC-002 to SPEC-008 with the place in the
            file.
    """
    path = spec_file.path.parent / name
    try:
        content = document.read(path)
    except UnreadableDocument as error:
        fault = UnreadableDocument(need=f"{error.need}: {path}", fix="check the name; it is relative to the spec")
        raise spec_file.document.locate(fault, ("spec", "load", "profile")) from None
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
