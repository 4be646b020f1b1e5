"""The name and tag of an image."""

from __future__ import annotations

import re

from penstock.infra.environment import IMAGE_TAG_PATTERN
from penstock.scripts.image.errors import BadImageName

# Source: the grammar of references in github.com/distribution/reference: a host with a port, then lower-case path components.
_NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?/)?[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*")


def checked(image: str) -> str:
    """The name, if it is one with a tag.

    Raises:
        BadImageName: IMG-006.
    """
    name, _, tag = image.rpartition(":")
    if not _NAME.fullmatch(name) or not re.fullmatch(IMAGE_TAG_PATTERN, tag):
        fix = "--tag registry.example.com/team/jobs:1.4.2"
        raise BadImageName(path="--tag", given=image, need="NAME:TAG, the name in lower case", fix=fix)
    return image
