"""The folders of jobs on S3: which they write to and read from, and what two jobs must not share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from penstock.infra.errors import InputsOverlap, OutputsOverlap
from penstock.infra.plans import JobPlan
from penstock.jobs.document import dotted
from penstock.jobs.spec import SpecFile
from penstock.sizing.errors import PenstockError, raise_all


class _Input(NamedTuple):
    job: JobPlan
    source: str
    bucket: str | None
    path: str


class Folder(NamedTuple):
    """A folder on S3.

    Args:
        bucket: a bucket that the spec names; None for the environment's output bucket.
        path: path in it.
    """

    bucket: str | None
    path: str


def foreign(bucket: str | None, output: str) -> str | None:
    """The bucket that a spec names; None if that is the environment's own.

    Args:
        bucket: named by the spec, None for the environment's.
        output: name of the environment's output bucket.
    """
    return None if bucket == output else bucket


def output_folders(job: SpecFile, output: str) -> list[Folder]:
    """The folders that a job writes to, sorted, those of the output bucket first.

    Args:
        job: its spec.
        output: name of the environment's output bucket.
    """
    folders = {Folder(foreign(sink.bucket, output), sink.path) for sink in job.job.spec.file_sinks.values()}
    return sorted(folders, key=lambda folder: (folder.bucket or "", folder.path))


def refuse_shared_folders(jobs: Sequence[JobPlan], output: str) -> None:
    """Rejects two jobs that could overwrite each other's files.

    Args:
        jobs: of an environment.
        output: name of its output bucket.

    Raises:
        PenstockError: INF-051 for each such sink.
    """
    owners: list[tuple[Folder, str]] = []
    faults: list[PenstockError] = []
    for job in jobs:
        faults += [_overlap(job, name, folder, other) for name, folder, other in _taken(job.spec, output, owners)]
        owners += [(folder, job.name) for folder in output_folders(job.spec, output)]
    raise_all(faults)


def _taken(job: SpecFile, output: str, owners: Sequence[tuple[Folder, str]]) -> list[tuple[str, Folder, tuple[Folder, str]]]:
    folders = [(name, Folder(foreign(sink.bucket, output), sink.path)) for name, sink in job.job.spec.file_sinks.items()]
    return [(name, folder, owner) for name, folder in folders for owner in owners if _one_in_the_other(folder, owner[0])]


def _one_in_the_other(one: Folder, other: Folder) -> bool:
    path, path2 = f"{one.path}/", f"{other.path}/"
    return one.bucket == other.bucket and (path.startswith(path2) or path2.startswith(path))


def _overlap(job: JobPlan, sink: str, folder: Folder, owner: tuple[Folder, str]) -> PenstockError:
    place = ("spec", "sinks", sink, "files", "path")
    other, name = owner
    need = f"a separate folder; job {name} writes to {other.path}"
    return job.spec.document.locate(OutputsOverlap(path=dotted(place), given=folder.path, need=need, fix=f"path: {job.name}"), place)


def refuse_inputs_that_begin_alike(jobs: Sequence[JobPlan], output: str) -> None:
    """Rejects a job whose input is read by its path, with the input of another job beginning with that path: as a prefix of a listing,
    which the role needs as it is, ``in/clicks`` also gives the names of what is in ``in/clicks-2``.

    Args:
        jobs: of an environment.
        output: name of its output bucket.

    Raises:
        PenstockError: INF-054 for each such source.
    """
    inputs = [one for job in jobs for one in _inputs(job, output)]
    raise_all(_alike(one, other) for one in inputs for other in inputs if one.job.name != other.job.name and _begins(other, one))


def _inputs(job: JobPlan, output: str) -> Iterator[_Input]:
    for name, source in job.spec.job.spec.file_sources.items():
        yield _Input(job, name, foreign(source.bucket, output), source.path)


def _begins(other: _Input, one: _Input) -> bool:
    """Whether the other path begins with this one, and is not in that folder."""
    return one.bucket == other.bucket and f"{other.path}/".startswith(one.path) and not f"{other.path}/".startswith(f"{one.path}/")


def _alike(one: _Input, other: _Input) -> PenstockError:
    place = ("spec", "sources", one.source, "files", "path")
    need = f"a path with which no input of another job begins; job {other.job.name} reads {other.path}"
    fix = f"rename one of the folders, such as {one.path}-of-{one.job.name}"
    return one.job.spec.document.locate(InputsOverlap(path=dotted(place), given=one.path, need=need, fix=fix), place)
