"""The packages of Terraform's providers that the stacks may be applied with: a dependency lock file in each stack's folder.

Terraform refuses a package whose hash the file does not have. The hashes of the providers' releases are in ``providers.lock.hcl``. A
repository's own ``.terraform.lock.hcl`` adds hashes: of a platform whose unpacked package is known there alone, or of a package that a team
has built itself.

Source: Terraform's documentation, "Dependency Lock File".
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from penstock.infra.errors import ProviderLockInvalid

# Terraform's own name of the file, in a stack's folder and in a repository's root.
FILE = ".terraform.lock.hcl"
SHIPPED = Path(__file__).with_name("providers.lock.hcl")
_REGISTRY = "registry.terraform.io/hashicorp"
_BLOCK = re.compile(r'^provider "(?P<address>[^"\n]+)" \{\n(?P<body>.*?)^\}', flags=re.MULTILINE | re.DOTALL)
_VERSION = re.compile(r'^\s*version\s*=\s*"([^"\n]+)"', flags=re.MULTILINE)
_HASH = re.compile(r'"((?:h1|zh):[^"\n]+)"')


class LockedProvider(NamedTuple):
    """A provider of a lock file.

    Args:
        version: its version.
        hashes: of its packages, with their scheme, ``h1:`` or ``zh:``.
    """

    version: str
    hashes: frozenset[str]


def read(file: Path) -> dict[str, LockedProvider]:
    """The providers of a lock file, by their address; empty without a file.

    Raises:
        ProviderLockInvalid: INF-072, a block has no version.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    return {block["address"]: _provider(block, file) for block in _BLOCK.finditer(text)}


def write(folder: Path, repository: Path) -> None:
    """Writes the lock file of a synthesized stack, unless the one that it has allows all of that: Terraform adds the hash of a package
    that it has unpacked, and would fetch the package again without it.

    Args:
        folder: the stack's, with its cdk.tf.json.
        repository: folder that may have a lock file with further hashes.

    Raises:
        ProviderLockInvalid: INF-072, that file locks another version, or is not in the form that Terraform writes.
    """
    locked = {address: _merged(address, version, repository / FILE) for address, version in _required(folder).items()}
    before = read(folder / FILE)
    if before.keys() == locked.keys() and all(_allows(before[address], provider) for address, provider in locked.items()):
        return
    (folder / FILE).write_text("\n".join(_text(address, provider) for address, provider in sorted(locked.items())), encoding="utf-8")


def _required(folder: Path) -> dict[str, str]:
    """Address and version of each provider of a stack."""
    stack = json.loads((folder / "cdk.tf.json").read_text(encoding="utf-8"))
    required: Mapping[str, Mapping[str, str]] = stack["terraform"].get("required_providers", {})
    return {f"{_REGISTRY}/{one['source'].removeprefix('hashicorp/')}": one["version"] for one in required.values()}


def _merged(address: str, version: str, own: Path) -> LockedProvider:
    hashes = read(SHIPPED)[address].hashes
    added = read(own).get(address)
    if added is None:
        return LockedProvider(version, hashes)
    if added.version != version:
        need = f"version {version} of {address}, which the stacks require"
        raise ProviderLockInvalid(path=str(own), given=f"version {added.version}", need=need, fix=_fix(own))
    return LockedProvider(version, hashes | added.hashes)


def _provider(block: re.Match[str], file: Path) -> LockedProvider:
    version = _VERSION.search(block["body"])
    if version is None:
        raise ProviderLockInvalid(path=str(file), given=block["address"], need="a version of each provider", fix=_fix(file))
    return LockedProvider(version[1], frozenset(_HASH.findall(block["body"])))


def _allows(before: LockedProvider, wanted: LockedProvider) -> bool:
    return before.version == wanted.version and before.hashes >= wanted.hashes


def _fix(file: Path) -> str:
    return f"remove the provider's block from {file}, or write it again with 'terraform providers lock' in a stack's folder"


def _text(address: str, provider: LockedProvider) -> str:
    """As Terraform writes it."""
    hashes = "".join(f'    "{one}",\n' for one in sorted(provider.hashes))
    version = provider.version
    return f'provider "{address}" {{\n  version     = "{version}"\n  constraints = "{version}"\n  hashes = [\n{hashes}  ]\n}}\n'
