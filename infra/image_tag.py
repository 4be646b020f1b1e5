"""The tag of the image that the jobs run."""

from __future__ import annotations

import os
import re

from penstock.infra.environment import IMAGE_TAG_PATTERN, Environment
from penstock.infra.errors import BadImageTag

# Set by a pipeline to the tag that it has just built; tags in the registry are immutable, so each build has its own.
VARIABLE = "PENSTOCK_IMAGE_TAG"


def image_tag(environment: Environment) -> str:
    """The tag: PENSTOCK_IMAGE_TAG, or the environment's own.

    Args:
        environment: the environment of the jobs.

    Raises:
        BadImageTag: INF-050.
    """
    tag = os.environ.get(VARIABLE) or environment.spec.registry.image_tag
    if not re.fullmatch(IMAGE_TAG_PATTERN, tag):
        need = "at most 128 letters, digits, dots, hyphens and underscores, not starting with a dot or hyphen"
        raise BadImageTag(path=VARIABLE, given=tag, need=need, fix=f"export {VARIABLE}=1.4.2, or unset it")
    return tag
