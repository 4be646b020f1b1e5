"""The image of the pods' first process, made of one static program: no image registry is needed for it."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping
from pathlib import Path

IMAGE = "localhost/penstock/pause:1"
# Source: the image specification of OCI, "image configuration": architectures are called as Go calls them.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def write_archive(program: Path, archive: Path) -> Path:
    """Write the image as an archive that `ctr images import` reads.

    Args:
        program: the program, a static executable.
        archive: file to write.
    """
    layer = _tar({"pause": (program.read_bytes(), 0o755)})
    configuration = {
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": {"Entrypoint": ["/pause"], "User": "65535:65535"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    # Source: Docker's image specification 1.2, "Combined Image JSON + Filesystem Changeset Format".
    manifest = [{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]
    files = {"config.json": json.dumps(configuration).encode(), "layer.tar": layer, "manifest.json": json.dumps(manifest).encode()}
    archive.write_bytes(_tar({name: (content, 0o644) for name, content in files.items()}))
    return archive


def _tar(files: Mapping[str, tuple[bytes, int]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, (content, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
