"""What is in a registry of images on this machine."""

from __future__ import annotations

import hashlib
import json
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.scripts.kube.image_registry import ImageRegistry

_MANIFESTS = "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"
_LIMIT_S = 60


@dataclass(frozen=True)
class Registry:
    """A running registry, without TLS and without a login.

    Args:
        address: host and port.
    """

    address: str

    def manifest(self, name: str, tag: str) -> tuple[dict[str, Any], str]:
        """An image's manifest, and the digest that the registry gives it, which is that of its text."""
        request = urllib.request.Request(f"http://{self.address}/v2/{name}/manifests/{tag}", headers={"Accept": _MANIFESTS})
        with urllib.request.urlopen(request, timeout=_LIMIT_S) as answer:
            text, digest = answer.read(), answer.headers["Docker-Content-Digest"]
        assert digest == f"sha256:{hashlib.sha256(text).hexdigest()}"
        found: dict[str, Any] = json.loads(text)
        return found, digest

    def blob(self, name: str, digest: str) -> bytes:
        """The content with a digest."""
        with urllib.request.urlopen(f"http://{self.address}/v2/{name}/blobs/{digest}", timeout=_LIMIT_S) as answer:
            content: bytes = answer.read()
        assert digest == f"sha256:{hashlib.sha256(content).hexdigest()}"
        return content


@contextmanager
def serving(folder: Path, host: str, tell: Callable[[str], None]) -> Iterator[Registry]:
    """A registry on a free port of an address of this machine. Arguments as of `ImageRegistry`."""
    with ImageRegistry(folder, host, tell) as registry:
        yield Registry(registry.address)
