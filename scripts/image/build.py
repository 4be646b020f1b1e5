"""The image of the jobs on assembled bases, as a file: for tests on a real Kubernetes where no image registry is reached."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from penstock.scripts.image import bases, context
from penstock.scripts.image.builder import Build, Builder
from penstock.scripts.image.workspace import Progress, Workspace, workspace


@dataclass(frozen=True)
class Archive:
    """A built image as a file.

    Args:
        path: the file, which `ctr images import` and `docker load` take.
        image: the name and tag that the file gives it.
    """

    path: Path
    image: str


def built_archive(progress: Progress = lambda said: None, *, image: str | None = None) -> Archive:
    """The image of this checkout on assembled bases, as a file in the user's cache; built unless it has been.

    Args:
        progress: called with the current activity.
        image: name and tag; by default a name with the checksum of all that it is built from.

    Returns:
        The file and the image's name.

    Raises:
        PenstockError: IMG-001 to IMG-010, TOOL-015, TOOL-016.
    """
    key = context.checksum(context.kit_inputs(), bases.inputs(), image or "")
    name = image or f"localhost/penstock-jobs:{key}"
    with workspace(progress) as work:
        file = work.archives / key / "image.tar"
        if not file.is_file():
            builder = Builder(work)
            _build(builder, name)
            file.parent.mkdir(exist_ok=True)
            builder.save(name, file)
        # By its time the newest are kept.
        file.parent.touch()
        work.forget_old_archives()
        return Archive(file, name)


def base_names() -> dict[str, str]:
    """``SPARK``, ``MAVEN`` and ``UV`` -> name and tag of the official base, as the Dockerfile has them."""
    text = (context.image_folder() / "Dockerfile").read_text(encoding="utf-8")
    found = dict(re.findall(r"^ARG ([A-Z]+_(?:IMAGE|TAG))=(\S+)$", text, re.MULTILINE))
    return {
        name.removesuffix("_IMAGE"): f"{found[name]}:{found[name.replace('IMAGE', 'TAG')]}" for name in found if name.endswith("_IMAGE")
    }


def _build(builder: Builder, image: str) -> None:
    # Debian's Python: the one that uv downloads comes from neither of the package indexes.
    arguments = {"PYTHON": "system", **bases.assemble(builder, base_names())}
    folder = builder.work.temporary / "kit"
    context.fill(folder, context.penstock_wheel(builder.work))
    context.settle(folder)
    made = [builder.inputs_of(f"{bases.PREFIX}/{name}") or "" for name in base_names().values()]
    inputs = context.checksum(folder, *arguments.values(), *made)
    builder.build(Build("kit", image, folder / context.DOCKERFILE, folder, inputs, arguments, _settings(builder.work)))


def _settings(work: Workspace) -> dict[str, Path]:
    """The user's own settings of Maven and uv, which may name mirrors, as build secrets."""
    configuration = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    maven, uv = Path.home() / ".m2/settings.xml", configuration / "uv/uv.toml"
    own = uv.read_text(encoding="utf-8") if uv.is_file() else ""
    settings = work.temporary / "uv.toml"
    # The bases have the authorities that this machine trusts. First, because what follows a table belongs to it.
    settings.write_text(own if "system-certs" in own else f"system-certs = true\n{own}", encoding="utf-8")
    return {"uv": settings, **({"maven": maven} if maven.is_file() else {})}
