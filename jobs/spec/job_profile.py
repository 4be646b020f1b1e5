"""The measured profile of a job: the file that `penstock profile` writes, of which job and of which version of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from penstock.jobs.document import Document
from penstock.jobs.spec.app_sources import app_sources, content_hash
from penstock.jobs.spec.avro_schemas import avro_schemas
from penstock.jobs.spec.errors import AppNotFound, ForeignProfile, ProfileOfAnotherJob, ProfileOutdated
from penstock.jobs.spec.reading import SpecFile
from penstock.sizing.load.measured_job import MeasuredJob, of_document
from penstock.sizing.load.spread import Spread

KIND: Literal["JobProfile"] = "JobProfile"
API_VERSION: Literal["penstock/v1"] = "penstock/v1"
# How much a job has to do, how many resources it gets for that, and how it is started and stopped: the work for an event is the same.
_NOT_THE_WORK = {
    *("load", "parallelism", "stages", "executor", "driver", "local", "topics", "trigger", "bounded", "progress_timeout", "restart"),
    *("upgrade_mode", "restart_nonce", "rewind_to", "initial_savepoint_path", "initial_offsets", "allow_non_restored_state", "checkpoint"),
}


Change = Literal["app", "spec"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)


class Digest(_Part):
    """What was measured, as two hashes of 16 hexadecimal digits.

    Args:
        app: of the app's sources; empty for an app that is an installed package.
        spec: of what the spec says of the job's work: sources, sinks, parameters, state, Spark settings.
    """

    app: Annotated[str, Field(pattern=r"^([0-9a-f]{16})?$")]
    spec: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]

    @classmethod
    def of(cls, spec_file: SpecFile, app_path: Sequence[Path]) -> Digest:
        """Of a job as it is.

        Args:
            spec_file: its spec.
            app_path: folders of its app besides that of the spec.

        Raises:
            PenstockError: the app's module can't be read.
        """
        try:
            app = content_hash(app_sources(spec_file.job.spec.app, spec_file.path.parent, app_path))
        except AppNotFound:
            app = ""
        written = spec_file.job.spec.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude=_NOT_THE_WORK)
        text = json.dumps([written, avro_schemas(spec_file)], sort_keys=True)
        return cls(app=app, spec=hashlib.sha256(text.encode()).hexdigest()[:16])

    def differences(self, other: Digest) -> tuple[Change, ...]:
        """What differs."""
        changes: tuple[Change, ...] = ("app", "spec")
        return tuple(name for name in changes if getattr(self, name) != getattr(other, name))


class ProfiledRun(_Part):
    """A number of slots, as it was measured.

    Args:
        slots: tasks at a time.
        micro_batches: that were measured, without those that warm up.
        events: in them.
        events_per_s: without the fixed time of micro-batches.
        busy_cores: of the job's processes; None: not measured.
        others_busy_cores: of the broker and S3, which share the machine; None: not measured.
    """

    slots: Annotated[int, Field(ge=1)]
    micro_batches: Annotated[int, Field(ge=1)]
    events: Annotated[int, Field(ge=1)]
    events_per_s: Spread
    busy_cores: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    others_busy_cores: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None


class JobProfile(_Part):
    """The file.

    Args:
        api_version: of its format.
        kind: what it is.
        job: name of the job.
        digest: of the job as it was measured.
        measured: what `penstock size` plans with.
        state_rows: rows of the state at the end; None: no state, or not measured.
        runs: what that was computed from.
    """

    api_version: Literal["penstock/v1"] = API_VERSION
    kind: Literal["JobProfile"] = KIND
    job: str
    digest: Digest
    measured: MeasuredJob
    state_rows: Annotated[int, Field(ge=0)] | None = None
    runs: Annotated[tuple[ProfiledRun, ...], BeforeValidator(of_document), Field(min_length=1, max_length=100)]


def is_profile(document: Document) -> bool:
    """Whether a document says that it is one."""
    return isinstance(document.data, dict) and "kind" in document.data


def parsed(document: Document) -> JobProfile:
    """The document as a profile.

    Raises:
        PenstockError: PROF-001, and SPEC-004 to SPEC-008 with the place in the file.
    """
    data = document.data if isinstance(document.data, dict) else {}
    for field, need in (("kind", KIND), ("apiVersion", API_VERSION)):
        if data.get(field) != need:
            fault = ForeignProfile(
                path=field, need=f"{field}: {need}, as penstock profile writes it", fix="name a file of penstock profile"
            )
            raise document.locate(fault, (field,) if field in data else ())
    return document.parse(JobProfile)


def refuse_another_job(profile: JobProfile, document: Document, spec_file: SpecFile) -> None:
    """Raises if a profile is of a job with another name.

    Raises:
        ProfileOfAnotherJob: PROF-002.
    """
    name = spec_file.job.metadata.name
    if profile.job != name:
        fault = ProfileOfAnotherJob(need=f"a profile of {name}", fix=f"penstock profile {spec_file.path}, or name its own profile")
        raise document.locate(fault, ("job",))


def refuse_another_version(profile: JobProfile, document: Document, spec_file: SpecFile, app_path: Sequence[Path]) -> None:
    """Raises if the job has changed since it was measured.

    Raises:
        ProfileOutdated: PROF-003.
    """
    if changed := changes_since(profile, spec_file, app_path):
        need = f"a profile of the job as it is: its {' and '.join(changed)} changed since {profile.measured.date or 'then'}"
        fault = ProfileOutdated(need=need, fix=f"penstock profile {spec_file.path}")
        raise document.locate(fault, ("digest",))


def changes_since(profile: JobProfile, spec_file: SpecFile, app_path: Sequence[Path]) -> tuple[Change, ...]:
    """What of a job has changed since it was measured."""
    return profile.digest.differences(Digest.of(spec_file, app_path))
