"""buildah in the workspace: RUN is a chroot, so it needs root, and neither a daemon nor a container runtime."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.scripts.image.errors import BuildNotPermitted, BuildToolMissing
from penstock.scripts.image.workspace import Workspace

# What an image was built from: an image with this label of the same value is not built again.
INPUTS = "dev.penstock.inputs"
# A folder that every image has, and that is empty. A process of buildah's passes on what a step says, and ends when the step does: what it
# has not read by then is lost. Source: containers/buildah, chroot/run_common.go.
SAID_FOLDER = "/mnt"
# Of util-linux. The command becomes the first process of its own namespaces: mounts and processes end with it, also by kill -9.
ISOLATED = ("nice", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


@dataclass(frozen=True)
class Build:
    """The build of one image.

    Args:
        name: short, for its log.
        image: the name and tag that it gets.
        file: the Dockerfile.
        context: folder of the build.
        inputs: checksum of all that it is built from.
        arguments: build arguments.
        secrets: name -> file.
        said: folder, as `SAID_FOLDER` while it is built, for what its steps say before they fail; None: they say it on their output only.
    """

    name: str
    image: str
    file: Path
    context: Path
    inputs: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, Path] = field(default_factory=dict)
    said: Path | None = None


class Builder:
    """buildah.

    Args:
        work: the workspace, with its images.

    Raises:
        BuildToolMissing: IMG-001.
        BuildNotPermitted: IMG-002.
    """

    def __init__(self, work: Workspace) -> None:
        self.work = work
        missing = [program for program in ("buildah", "unshare") if shutil.which(program) is None]
        if missing:
            fix = "apt-get install buildah util-linux"
            raise BuildToolMissing(path="PATH", given=f"no {' and no '.join(missing)}", need="buildah, which builds images", fix=fix)
        if os.geteuid() != 0:
            need = "root, for buildah's chroot isolation"
            raise BuildNotPermitted(path="buildah", given=f"user id {os.geteuid()}", need=need, fix="run it as root (sudo)")
        # Containers of killed builds.
        self._ask("rm", "--all")

    def build(self, build: Build) -> None:
        """Builds an image unless it has been built from the same; unchanged layers are reused.

        Raises:
            ImageNotBuilt: IMG-010.
        """
        if self.inputs_of(build.image) == build.inputs:
            return
        self.work.progress(f"{build.name}: building {build.image}")
        # Docker's format: OCI's has no HEALTHCHECK.
        how = ["--isolation=chroot", "--format=docker", "--layers", f"--label={INPUTS}={build.inputs}"]
        arguments = [f"--build-arg={name}={value}" for name, value in build.arguments.items()]
        secrets = [f"--secret=id={name},src={file}" for name, file in build.secrets.items()]
        volumes = [f"--volume={build.said}:{SAID_FOLDER}"] if build.said else []
        named = ["--tag", build.image, "--file", str(build.file)]
        command = self._command("bud", *how, *arguments, *secrets, *volumes, *named, str(build.context))
        self.work.run(build.name, command, said=build.said)

    def inputs_of(self, image: str) -> str | None:
        """What an image was built from; None without the image or the label."""
        label = f'{{{{ index .Docker.Config.Labels "{INPUTS}" }}}}'
        answer = self._ask("inspect", "--type=image", "--format", label, image)
        return answer.stdout.strip() or None if answer.returncode == 0 else None

    def save(self, image: str, file: Path) -> None:
        """Writes an image to a file that `ctr images import` and `docker load` take.

        Raises:
            ImageNotBuilt: IMG-010.
        """
        partial = file.with_name(f".{file.name}.partial")
        partial.unlink(missing_ok=True)
        self.work.progress(f"writing {file}")
        try:
            self.work.run("save", self._command("push", "--quiet", image, f"docker-archive:{partial}:{image}"))
            partial.replace(file)
        finally:
            partial.unlink(missing_ok=True)

    def push(self, image: str) -> str:
        """Pushes an image to the registry of its name, with the login of `buildah login` or `docker login`.

        Returns:
            The digest of its manifest, by which the registry has it.

        Raises:
            ImageNotBuilt: IMG-010.
        """
        self.work.progress(f"pushing {image}")
        digest = self.work.temporary / "digest"
        self.work.run("push", self._command("push", "--quiet", f"--digestfile={digest}", image, f"docker://{image}"))
        return digest.read_text(encoding="ascii").strip()

    def size_bytes(self, image: str) -> int:
        """The size of an image's layers, uncompressed."""
        found: list[dict[str, Any]] = json.loads(self._ask("images", "--json", image).stdout)
        # buildah's own text, in decimal units.
        number, unit = str(found[0]["size"]).split()
        scale = {"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9}
        return round(float(number) * scale[unit.upper()])

    def _ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "TMPDIR": str(self.work.temporary)}
        return subprocess.run(self._command(*words), capture_output=True, text=True, check=False, env=environment)

    def _command(self, *words: str) -> list[str]:
        # Its record of mounts must not outlive them, so it is in the temporary folder.
        folders = ("--root", str(self.work.storage), "--runroot", str(self.work.temporary / "run"))
        return [*ISOLATED, "buildah", *folders, *words]
