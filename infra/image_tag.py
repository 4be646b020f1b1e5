"""The tag of the image that each job runs."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping

from penstock.infra.environment import IMAGE_TAG_PATTERN, Environment
from penstock.infra.errors import BadImageTag, ImageTagOfUnknownJob
from penstock.sizing.errors import PenstockError, raise_all

# Set by a pipeline to what it has just built; tags in the registry are immutable, so each build has its own.
VARIABLE = "PENSTOCK_IMAGE_TAG"
# Name of the tag of all jobs that no other part names: no job has it.
_ALL = ""


def image_tags(environment: Environment, jobs: Collection[str]) -> dict[str, str]:
    """Job -> tag of its image.

    The variable has the form ``TAG``, ``JOB=TAG``, or several of these with commas between them. A tag of one job comes before a tag of
    all jobs, and the variable before the environment's file.

    Args:
        environment: the environment of the jobs.
        jobs: their names.

    Raises:
        PenstockError: INF-050, INF-053; several are raised as `Faults`.
    """
    registry = environment.spec.registry
    given, faults = _of_variable(os.environ.get(VARIABLE, ""))
    faults += [_unknown(job, VARIABLE, jobs) for job in given if job != _ALL and job not in jobs]
    for job in registry.image_tags:
        if job not in jobs:
            place = ("spec", "registry", "imageTags", job)
            faults.append(environment.locate(_unknown(job, "", jobs), *place))
    raise_all(faults)
    for_all = given.get(_ALL, registry.image_tag)
    return {job: given.get(job) or registry.image_tags.get(job) or for_all for job in jobs}


def _of_variable(text: str) -> tuple[Mapping[str, str], list[PenstockError]]:
    tags: dict[str, str] = {}
    faults: list[PenstockError] = []
    for part in text.split(",") if text else []:
        job, _, tag = part.rpartition("=")
        if not re.fullmatch(IMAGE_TAG_PATTERN, tag) or ("=" in part and not job) or job in tags:
            need = (
                "a tag, JOB=TAG, or several with commas between them and each job once; a tag has at most 128 letters, digits, dots, "
                "hyphens and underscores, and starts with neither a dot nor a hyphen"
            )
            fix = f"export {VARIABLE}=1.4.2 or {VARIABLE}=user-credit=1.4.2, or unset it"
            faults.append(BadImageTag(path=VARIABLE, given=part, need=need, fix=fix))
        tags[job] = tag
    return tags, faults


def _unknown(job: str, path: str, jobs: Collection[str]) -> ImageTagOfUnknownJob:
    need = f"a job of the environment: {', '.join(sorted(jobs)) or 'it has none'}"
    return ImageTagOfUnknownJob(path=path, given=job, need=need, fix="use the name of its spec's metadata, or remove the tag")
