"""The image of the jobs: with a team's apps, or alone on assembled bases, as a file for tests on a real Kubernetes."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.infra.app_packages import AppPackages
from penstock.scripts.image import bases, context
from penstock.scripts.image.apps import gather
from penstock.scripts.image.builder import SAID_FOLDER, Build, Builder
from penstock.scripts.image.workspace import Progress, Workspace, workspace
from penstock.scripts.installation import image_packages
from penstock.scripts.progress import Steps


@dataclass(frozen=True)
class Archive:
    """A built image as a file.

    Args:
        path: the file, which `ctr images import` and `docker load` take.
        image: the name and tag that the file gives it.
    """

    path: Path
    image: str


@dataclass(frozen=True)
class Request:
    """An image of the jobs with a team's apps.

    Args:
        image: name and tag.
        apps: folders and wheels.
        packages: of the apps.
        assembled: whether the bases are assembled from packages instead of pulled.
        file: where it is written as an archive; None: nowhere.
        push: whether it is pushed to the registry of its name.
    """

    image: str
    apps: Sequence[Path]
    packages: Sequence[AppPackages] = ()
    assembled: bool = False
    file: Path | None = None
    push: bool = False


@dataclass(frozen=True)
class BuiltImage:
    """An image that was built.

    Args:
        size_bytes: of its layers, uncompressed.
        digest: of its manifest in the registry; None: it was not pushed.
    """

    size_bytes: int
    digest: str | None = None


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


def write_context(folder: Path, packages: Sequence[AppPackages] = (), progress: Progress = lambda said: None) -> str:
    """Writes the folder that the image of the jobs without apps is built from, by Docker or any other builder.

    Args:
        folder: that does not exist, or is replaced.
        packages: of the apps.
        progress: called with the current activity.

    Returns:
        A checksum of the folder, which is in its file ``checksum``, too.

    Raises:
        PenstockError: IMG-010, TOOL-014 to TOOL-016, TOOL-041.
    """
    with workspace(progress) as work:
        made = _filled(work, packages)
        found = context.checksum(made)
        (made / "checksum").write_text(f"{found}\n", encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, folder)
    return found


def build_with_apps(request: Request, progress: Progress = lambda said: None) -> BuiltImage:
    """Builds the image of the jobs with a team's apps, and pushes it or writes it to a file if that is asked for.

    Args:
        request: what is built.
        progress: called with the current activity.

    Returns:
        Its size and, if it was pushed, its digest.

    Raises:
        PenstockError: IMG-001 to IMG-010, TOOL-014 to TOOL-016, TOOL-041.
    """
    with workspace(progress) as work:
        folder = work.temporary / "team"
        modules = " ".join(gather(request.apps, folder / "apps"))
        context.settle(folder)
        builder = Builder(work)
        kit = f"localhost/penstock-kit:{context.checksum(context.kit_inputs(), str(request.assembled))}"
        _build(builder, kit, assembled=request.assembled, packages=request.packages)
        file = Path(__file__).with_name("apps.Dockerfile")
        said = work.temporary / "said"
        said.mkdir()
        arguments = {"JOBS_IMAGE": kit, "MODULES": modules, "SAID": f"{SAID_FOLDER}/imports"}
        inputs = context.checksum(folder, file, builder.inputs_of(kit) or "", modules)
        builder.build(Build("apps", request.image, file, folder, inputs, arguments, said=said))
        if request.file is not None:
            builder.save(request.image, request.file.absolute())
        digest = builder.push(request.image) if request.push else None
        return BuiltImage(builder.size_bytes(request.image), digest)


def _build(builder: Builder, image: str, *, assembled: bool = True, packages: Sequence[AppPackages] = ()) -> None:
    # Debian's Python: the one that uv downloads comes from neither of the package indexes.
    arguments = {"PYTHON": "system", **bases.assemble(builder, base_names())} if assembled else {}
    folder = _filled(builder.work, packages)
    made = [builder.inputs_of(f"{bases.PREFIX}/{name}") or "" for name in base_names().values()] if assembled else []
    inputs = context.checksum(folder, *arguments.values(), *made)
    builder.build(Build("kit", image, folder / context.DOCKERFILE, folder, inputs, arguments, _settings(builder.work)))


def _filled(work: Workspace, packages: Sequence[AppPackages]) -> Path:
    """The context of the image without apps."""
    folder = work.temporary / "kit"
    context.fill(folder, context.penstock_wheel(work))
    if packages:
        image_packages.write(packages, folder / "dist/packages", Steps())
    context.settle(folder)
    return folder


def _settings(work: Workspace) -> dict[str, Path]:
    """The user's own settings of Maven and uv, which may name mirrors, as build secrets."""
    configuration = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    maven, uv = Path.home() / ".m2/settings.xml", configuration / "uv/uv.toml"
    own = uv.read_text(encoding="utf-8") if uv.is_file() else ""
    settings = work.temporary / "uv.toml"
    # The bases have the authorities that this machine trusts. First, because what follows a table belongs to it.
    settings.write_text(own if "system-certs" in own else f"system-certs = true\n{own}", encoding="utf-8")
    return {"uv": settings, **({"maven": maven} if maven.is_file() else {})}
