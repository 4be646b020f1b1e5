"""The digests of the images and charts of others: a tag may be given to another image, a digest may not.

Those of this release are in ``images.lock.json``. A repository's own file of that name in its root, written by ``penstock image lock``,
takes precedence: it also has what this release has no digest of, or what a team's mirror has built anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from penstock.infra.errors import ImageLockInvalid
from penstock.infra.parts.mirrors import Registry, mirrored

FILE = "images.lock.json"
SHIPPED = Path(__file__).with_name(FILE)
# Source: OCI image specification, "Digests".
DIGEST_PATTERN = r"^sha256:[0-9a-f]{64}$"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Locked(_Model):
    """An image or a chart.

    Args:
        digest: of its manifest or index.
        unpinned: why there is none.
    """

    digest: Annotated[str, Field(pattern=DIGEST_PATTERN)] | None = None
    unpinned: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (self.digest is None) == (self.unpinned is None):
            raise ValueError("either digest or unpinned")
        return self


class ImageLock(_Model):
    """A lock file: name with registry and tag -> its digest.

    Args:
        charts: of Helm, from OCI registries.
        images: of containers.
    """

    charts: dict[str, Locked] = {}
    images: dict[str, Locked] = {}


def read(file: Path) -> ImageLock:
    """A lock file; an empty one if there is none.

    Raises:
        ImageLockInvalid: INF-073.
    """
    try:
        return ImageLock.model_validate_json(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ImageLock()
    except ValidationError as invalid:
        first = invalid.errors(include_url=False, include_input=False)[0]
        given = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        fix = "write it again with 'penstock image lock'"
        raise ImageLockInvalid(path=str(file), given=given, need="digests by name", fix=fix) from None


def locked(repository: Path | None = None) -> ImageLock:
    """What this release and a repository have locked.

    Args:
        repository: folder of its lock file; None: the current one, in which `penstock` and `cdktf` run.

    Raises:
        ImageLockInvalid: INF-073.
    """
    shipped, own = read(SHIPPED), read((repository or Path.cwd()) / FILE)
    return ImageLock(charts={**shipped.charts, **own.charts}, images={**shipped.images, **own.images})


def digest_of(image: str) -> str | None:
    """The digest of an image, None if it is not locked.

    Args:
        image: with registry and tag, such as ``quay.io/prometheus/prometheus:v3.13.5``.

    Raises:
        ImageLockInvalid: INF-073.
    """
    found = locked().images.get(image)
    return found.digest if found is not None else None


def pinned(image: str, mirrors: Mapping[Registry, str]) -> str:
    """An image at the mirror of its registry, with its digest if it is locked.

    Args:
        image: with registry and tag.
        mirrors: registry -> mirror.

    Raises:
        ImageLockInvalid: INF-073.
    """
    digest = digest_of(image)
    return mirrored(image, mirrors) + (f"@{digest}" if digest else "")


def text(lock: ImageLock) -> str:
    """A lock file's text, in order of names."""
    document = {
        kind: {name: one.model_dump(exclude_none=True) for name, one in sorted(named.items())}
        for kind, named in (("charts", lock.charts), ("images", lock.images))
    }
    return json.dumps(document, indent=2) + "\n"
