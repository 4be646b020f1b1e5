"""What ``penstock image lock`` writes: the digests that registries give the images and charts of others now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from penstock.infra.environment import Environment
from penstock.infra.image_lock import FILE, ImageLock, Locked, read, text
from penstock.infra.images_of_others import images
from penstock.infra.karpenter_charts import charts
from penstock.infra.parts.mirrors import mirrored
from penstock.scripts.provisioning import oci_registry
from penstock.scripts.provisioning.errors import NotInRegistry

Progress = Callable[[str], None]


def lock(environment: Environment, folder: Path, progress: Progress) -> ImageLock:
    """Ask for the digests and write them to a folder's lock file, which keeps what it has of other versions.

    Args:
        environment: with a cluster; its mirrors are asked, not the publishers' registries.
        folder: of the file ``images.lock.json``.
        progress: called with each name before it is asked for.

    Returns:
        The new entries.

    Raises:
        NotInRegistry: DEP-057.
        PenstockError: INF-073, DEP-058 or DEP-059.
    """
    before = read(folder / FILE)

    def of(name: str) -> Locked:
        asked = mirrored(name, environment.spec.mirrors)
        progress(asked)
        digest = oci_registry.digest(asked)
        if digest is None:
            raise NotInRegistry(path=asked, given="not in the registry", need=name, fix="copy it there, or correct spec.mirrors")
        return Locked(digest=digest)

    found = ImageLock(
        charts={chart.published: of(chart.published) for chart in charts(environment)},
        images={image: of(image) for image in images(environment)},
    )
    merged = ImageLock(charts={**before.charts, **found.charts}, images={**before.images, **found.images})
    (folder / FILE).write_text(text(merged), encoding="utf-8")
    return found
