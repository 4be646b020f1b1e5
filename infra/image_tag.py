"""Which image the jobs run."""

from __future__ import annotations

import os
import re

from penstock.infra.environment import IMAGE_TAG_PATTERN, Environment
from penstock.infra.errors import BadImageTag

# A pipeline says by it what it has just built; tags in the registry never change, so that each build has its own.
VARIABLE = "PENSTOCK_IMAGE_TAG"


def image_tag(environment: Environment) -> str:
    """The tag: PENSTOCK_IMAGE_TAG, or the environment's own.

    Args:
        environment: whose jobs they are.

    Raises:
        BadImageTag: INF-050.
    """
    tag = os.environ.get(VARIABLE) or environment.spec.registry.image_tag
    if not re.fullmatch(IMAGE_TAG_PATTERN, tag):
        need = "at most 128 letters, digits, dots, hyphens and underscores, not starting with a dot or hyphen"
        raise BadImageTag(path=VARIABLE, given=tag, need=need, fix=f"export {VARIABLE}=1.4.2, or unset it")
    return tag
