"""Logins to OCI registries as Helm has them: in its own file, or else in Docker's, with the credential helpers that these name.

Source: Helm's documentation, "Use OCI-based registries" and of its environment variables; Docker's, `docker login`, "Credential stores"
and "Credential helper protocol".
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

HELPER_LIMIT_S = 30
# What a helper answers of a token instead of a password, which is exchanged otherwise; none of the registries here has it.
_TOKEN_USER = "<token>"


class Login(NamedTuple):
    """A user and a password."""

    user: str
    password: str


def login_of(host: str, environment: Mapping[str, str] = os.environ) -> Login | None:
    """The login to a registry; None if there is none.

    Args:
        host: with its port, such as ``111122223333.dkr.ecr.us-east-1.amazonaws.com``.
        environment: variables that name the files and the folder of the user.
    """
    for file in _files(environment):
        found = _in_file(file, host, environment)
        if found is not None:
            return found
    return None


def _files(environment: Mapping[str, str]) -> Iterator[Path]:
    """Those of Helm and of Docker, in the order in which Helm looks."""
    home = Path(environment.get("HOME") or Path.home())
    named = environment.get("HELM_REGISTRY_CONFIG_PATH") or environment.get("HELM_REGISTRY_CONFIG")
    if named:
        yield Path(named)
    else:
        standard = home / ("Library/Preferences" if sys.platform == "darwin" else ".config")
        base = environment.get("HELM_CONFIG_HOME") or Path(environment.get("XDG_CONFIG_HOME") or standard) / "helm"
        yield Path(base) / "registry/config.json"
    yield Path(environment.get("DOCKER_CONFIG") or home / ".docker") / "config.json"


def _in_file(file: Path, host: str, environment: Mapping[str, str]) -> Login | None:
    try:
        config: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    helper = config.get("credHelpers", {}).get(host) or config.get("credsStore")
    from_helper = _of_helper(helper, host, environment) if helper else None
    if from_helper is not None:
        return from_helper
    for name, entry in config.get("auths", {}).items():
        if name.removeprefix("https://").split("/")[0] == host and entry.get("auth"):
            user, _, password = base64.b64decode(entry["auth"]).decode("utf-8", "replace").partition(":")
            return Login(user, password)
    return None


def _of_helper(name: str, host: str, environment: Mapping[str, str]) -> Login | None:
    program = shutil.which(f"docker-credential-{name}", path=environment.get("PATH", os.defpath))
    if program is None:
        return None
    try:
        ran = subprocess.run(
            [program, "get"], input=host, env=dict(environment), capture_output=True, text=True, timeout=HELPER_LIMIT_S, check=True
        )
        said = json.loads(ran.stdout)
    except (subprocess.SubprocessError, OSError, ValueError):
        return None
    if said.get("Username") in (None, "", _TOKEN_USER):
        return None
    return Login(said["Username"], said["Secret"])
