"""Where this machine has a provider of Terraform's, and the Terraform CLI configuration that takes it from there.

Terraform asks its registry for a provider. A machine that can't reach it may have the provider in a folder: then Terraform must be told
of the folder in a CLI configuration. What the user has configured comes first.
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
# Where people and packages put such a folder, and how deep below it is looked for; all of it takes well under a second.
PREFIXES = ("/opt", "/usr/local", "/usr/share", "/usr/lib", "/var/lib", "~/.local/share", "~/.terraform.d")
DEPTH = 4
_GO_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Search:
    """What a search found.

    Args:
        configuration: the text of a CLI configuration that Terraform is to be given; None leaves the user's own in force.
        folder: the folder that holds the provider; None where Terraform asks its registry, or the user's configuration says where.
        searched: every place that was looked at, in order, for the error message.
    """

    configuration: str | None
    folder: Path | None
    searched: tuple[str, ...]


def address(source: str) -> str:
    """A provider's whole address, as its folder in a mirror has it.

    Args:
        source: as a stack names it: ``aws``, ``hashicorp/aws``, or with the registry's host.
    """
    parts = source.split("/")
    return "/".join([*([REGISTRY, "hashicorp"][: 3 - len(parts)]), *parts])


def find(version: str, environment: Mapping[str, str], *, prefixes: Iterable[str] = PREFIXES, provider: str = PROVIDER) -> Search:
    """Finds the AWS provider.

    The order: the folder that PENSTOCK_TERRAFORM_MIRROR names, the user's own CLI configuration, the folders in which Terraform itself
    looks, any folder below the usual prefixes, the registry.

    Args:
        version: of the provider, as ``5.100.0``.
        environment: the variables that Terraform will run with.
        prefixes: folders that are searched, ``~`` for the home folder.
        provider: its address, with the registry's host.

    Raises:
        ProviderNotFound: RUN-005, PENSTOCK_TERRAFORM_MIRROR names a folder without the provider.
    """
    home = Path(environment.get("HOME") or Path.home())
    if named := environment.get(VARIABLE):
        return _found(_named_folder(Path(named).expanduser(), provider, version), (VARIABLE,), provider)
    searched = [f"{VARIABLE} (not set)"]
    own = _own_configuration(environment, home, searched)
    if own:
        return Search(None, None, tuple(searched))
    for folder in chain(_implied_folders(environment, home), _folders_below(prefixes, home, searched, provider)):
        if _holds(folder, provider, version):
            return _found(folder, (*searched, str(folder)), provider)
        searched.append(str(folder))
    # Empty, so that a variable that names a missing file does no harm.
    return Search("", None, (*searched, "Terraform's registry"))


def _named_folder(folder: Path, provider: str, version: str) -> Path:
    if not _holds(folder, provider, version):
        need = f"{provider}/{version}/{_system()} in it"
        fix = f"'terraform providers mirror {folder}' in a stack's directory fills it; or unset {VARIABLE}"
        raise ProviderNotFound(path=VARIABLE, given=str(folder), need=need, fix=fix)
    return folder


def _own_configuration(environment: Mapping[str, str], home: Path, searched: list[str]) -> bool:
    """Whether the user has a CLI configuration that has a say in this."""
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
    """Whether a folder holds the provider for this system, unpacked or as an archive."""
    own = folder / provider
    archive = f"terraform-provider-{own.name}_{version}_{_system()}.zip"
    return (own / version / _system()).is_dir() or (own / archive).is_file()


def _system() -> str:
    """Go's names of this system, as in the provider's folders."""
    machine = platform.machine().lower()
    return f"{platform.system().lower()}_{_GO_MACHINES.get(machine, machine)}"


def _found(folder: Path, searched: tuple[str, ...], provider: str) -> Search:
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
