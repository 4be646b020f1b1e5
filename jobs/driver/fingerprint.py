"""What a driver runs, in four hashes: another one begins another generation of its job."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

from penstock.jobs.configuration.runtime import IMAGE_VARIABLE, RuntimeConfiguration
from penstock.jobs.spec import SpecFile
from penstock.jobs.spec.app_sources import app_sources, content_hash
from penstock.jobs.spec.avro_schemas import avro_schemas
from penstock.jobs.spec.errors import AppNotFound
from penstock.jobs.storage.generation import Fingerprint

# How a job is upgraded, and what `penstock up` feeds it, is not what it runs.
_NOT_RUN = {"upgrade_mode", "local"}


def fingerprint(spec: SpecFile, configuration: RuntimeConfiguration) -> Fingerprint:
    """The fingerprint of a driver.

    Args:
        spec: the job's.
        configuration: what the driver was started with.
    """
    return Fingerprint(
        app=app_hash(spec, [Path(folder) for folder in configuration.app_path]),
        spec=spec_hash(spec),
        plan=configuration.plan,
        image=os.environ.get(IMAGE_VARIABLE) or None,
    )


def app_hash(spec: SpecFile, app_path: Sequence[Path]) -> str:
    """Of the app and of the modules that it imports from its folders; empty for one that is not found there.

    Args:
        spec: the job's.
        app_path: folders of the app besides that of the spec.
    """
    try:
        return content_hash(app_sources(spec.job.spec.app, spec.path.parent, app_path))
    except AppNotFound:
        # An installed package, in an archive or elsewhere on the module path: the image's tag tells its releases apart.
        return ""


def spec_hash(spec: SpecFile) -> str:
    """Of what the team has written, so that a default of a later release changes nothing, with the schemas beside it."""
    written = spec.job.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"spec": _NOT_RUN})
    text = json.dumps([written, avro_schemas(spec)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
