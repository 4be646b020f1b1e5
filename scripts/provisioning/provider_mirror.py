"""Local copy of a Terraform provider, and the Terraform CLI configuration that uses it.

Terraform downloads providers from its registry. A machine that cannot reach the registry may have the provider in a folder, which
Terraform uses only if a CLI configuration names it. The user's own configuration takes precedence.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from penstock.scripts.errors import ProviderNotFound

VARIABLE = "PENSTOCK_TERRAFORM_MIRROR"
CONFIGURATION_VARIABLE = "TF_CLI_CONFIG_FILE"
PROVIDER = "registry.terraform.io/hashicorp/aws"
REGISTRY = "registry.terraform.io"
# Usual locations of such a folder, and the search depth below them; the search takes well under a second.
PREFIXES = ("/opt", "/usr/local", "/usr/share", "/usr/lib", "/var/lib", "~/.local/share", "~/.terraform.d")
DEPTH = 4
_GO_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Search:
    """Result of a search.

    Args:
        configuration: text of a CLI configuration for Terraform; None keeps the user's own.
        folder: folder with the provider; None if Terraform uses its registry or the user's configuration.
        searched: searched locations, in order, for the error message.
    """

    configuration: str | None
    folder: Path | None
    searched: tuple[str, ...]


def address(source: str) -> str:
    """Return a provider's full address, which is also its folder in a mirror.

    Args:
        source: the source in a stack: ``aws``, ``hashicorp/aws``, or with the registry's host.
    """
    parts = source.split("/")
    return "/".join([*([REGISTRY, "hashicorp"][: 3 - len(parts)]), *parts])


def find(version: str, environment: Mapping[str, str], *, prefixes: Iterable[str] = PREFIXES, provider: str = PROVIDER) -> Search:
    """Locate the AWS provider.

    In this order: the folder named by PENSTOCK_TERRAFORM_MIRROR, the user's CLI configuration, Terraform's implied mirror folders, any
    folder below the usual prefixes, the registry.

    Args:
        version: version of the provider, such as ``5.100.0``.
        environment: environment variables of Terraform.
        prefixes: searched folders, ``~`` for the home folder.
        provider: its address, with the registry's host.

    Raises:
        ProviderNotFound: RUN-005, PENSTOCK_TERRAFORM_MIRROR names a folder without the provider.
    """
    home = Path(environment.get("HOME") or Path.home())
    if named := environment.get(VARIABLE):
        return _in_folder(_named_folder(Path(named).expanduser(), provider, version), (VARIABLE,), provider)
    searched = [f"{VARIABLE} (not set)"]
    own = _own_configuration(environment, home, searched)
    if own:
        return Search(None, None, tuple(searched))
    for folder in chain(_implied_folders(environment, home), _folders_below(prefixes, home, searched, provider)):
        if _holds(folder, provider, version):
            return _in_folder(folder, (*searched, str(folder)), provider)
        searched.append(str(folder))
    # Empty, so that a variable that names a missing file has no effect.
    return Search("", None, (*searched, "Terraform's registry"))


def _named_folder(folder: Path, provider: str, version: str) -> Path:
    if not _holds(folder, provider, version):
        need = f"{provider}/{version}/{system()} in it"
        fix = f"'terraform providers mirror {folder}' in a stack's directory fills it; or unset {VARIABLE}"
        raise ProviderNotFound(path=VARIABLE, given=str(folder), need=need, fix=fix)
    return folder


def _own_configuration(environment: Mapping[str, str], home: Path, searched: list[str]) -> bool:
    """Whether the user has a CLI configuration that affects provider installation."""
    if named := environment.get(CONFIGURATION_VARIABLE):
        readable = _text(Path(named)) is not None
        searched.append(f"{CONFIGURATION_VARIABLE}={named}" + ("" if readable else " (no such file)"))
        return readable
    return "provider_installation" in (_text(home / ".terraformrc") or "")


def _implied_folders(environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    """Source: Terraform's documentation, CLI configuration, "Implied local mirror directories"."""
    yield home / ".terraform.d/plugins"
    if platform.system() == "Darwin":
        yield home / "Library/Application Support/io.terraform/plugins"
        yield Path("/Library/Application Support/io.terraform/plugins")
    for data in (environment.get("XDG_DATA_HOME") or str(home / ".local/share"), *_data_folders(environment)):
        yield Path(data) / "terraform/plugins"


def _data_folders(environment: Mapping[str, str]) -> list[str]:
    return (environment.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share").split(":")


def _folders_below(prefixes: Iterable[str], home: Path, searched: list[str], provider: str) -> Iterator[Path]:
    for prefix in prefixes:
        folder = home / prefix.removeprefix("~/") if prefix.startswith("~/") else Path(prefix)
        searched.append(f"below {folder}")
        yield from _mirrors_below(folder, provider, DEPTH)


def _mirrors_below(folder: Path, provider: str, depth: int) -> Iterator[Path]:
    if (folder / provider).is_dir():
        yield folder
    if depth == 0:
        return
    try:
        below = sorted(entry for entry in folder.iterdir() if entry.is_dir() and not entry.is_symlink())
    except OSError:
        return
    for entry in below:
        yield from _mirrors_below(entry, provider, depth - 1)


def _holds(folder: Path, provider: str, version: str) -> bool:
    """Whether a folder contains the provider for this platform, unpacked or as an archive."""
    own = folder / provider
    archive = f"terraform-provider-{own.name}_{version}_{system()}.zip"
    return (own / version / system()).is_dir() or (own / archive).is_file()


def system() -> str:
    """Go's names of this platform, as in the provider's folders."""
    machine = platform.machine().lower()
    return f"{platform.system().lower()}_{_GO_MACHINES.get(machine, machine)}"


def _in_folder(folder: Path, searched: tuple[str, ...], provider: str) -> Search:
    path = re.sub(r"([$%]){", r"\1\1{", json.dumps(str(folder.absolute()), ensure_ascii=False))
    text = f"""provider_installation {{
  filesystem_mirror {{
    path    = {path}
    include = ["{provider}"]
  }}
  direct {{
    exclude = ["{provider}"]
  }}
}}
"""
    return Search(text, folder.absolute(), searched)


def _text(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
