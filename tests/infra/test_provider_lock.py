from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from penstock.infra.errors import ProviderLockInvalid
from penstock.infra.provider_lock import FILE, SHIPPED, read, write
from penstock.scripts.layout import ROOT

AWS, HELM = "registry.terraform.io/hashicorp/aws", "registry.terraform.io/hashicorp/helm"
OWN = f'provider "{AWS}" {{\n  version     = "5.100.0"\n  hashes = [\n    "h1:ours=",\n  ]\n}}\n'


def _stack(folder: Path, **required: str) -> Path:
    providers = {name: {"source": name, "version": version} for name, version in required.items()}
    folder.mkdir(exist_ok=True)
    (folder / "cdk.tf.json").write_text(json.dumps({"terraform": {"required_providers": providers}}))
    return folder


def test_the_shipped_hashes_are_of_both_providers_and_of_every_platform() -> None:
    shipped = read(SHIPPED)
    assert set(shipped) == {AWS, HELM}
    for provider in shipped.values():
        archives = {one for one in provider.hashes if one.startswith("zh:")}
        # Archives of the platforms of a release and the registry's manifest: linux, darwin, windows and freebsd.
        assert len(archives) >= 12
        assert all(re.fullmatch(r"zh:[0-9a-f]{64}|h1:[A-Za-z0-9+/]{43}=", one) for one in provider.hashes)


def test_a_stack_has_the_packages_of_its_own_provider_alone(tmp_path: Path) -> None:
    for name, version, address in (("aws", "5.100.0", AWS), ("helm", "3.1.1", HELM)):
        folder = _stack(tmp_path / name, **{name: version})
        write(folder, tmp_path)
        assert read(folder / FILE) == {address: read(SHIPPED)[address]}


def test_a_stack_without_a_provider_has_none(tmp_path: Path) -> None:
    folder = _stack(tmp_path / "stack")
    write(folder, tmp_path)
    assert not (folder / FILE).exists()


def test_a_repository_adds_packages_of_its_own(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(OWN)
    folder = _stack(tmp_path / "stack", aws="5.100.0")
    write(folder, tmp_path)
    assert read(folder / FILE)[AWS].hashes == read(SHIPPED)[AWS].hashes | {"h1:ours="}


def test_a_repository_that_locks_another_version_is_told_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(OWN.replace("5.100.0", "5.99.0"))
    with pytest.raises(ProviderLockInvalid) as raised:
        write(_stack(tmp_path / "stack", aws="5.100.0"), tmp_path)
    assert (raised.value.given, raised.value.code) == ("version 5.99.0", "INF-072")
    assert "terraform providers lock" in raised.value.fix


def test_a_file_without_a_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(OWN.replace("version ", "revision "))
    with pytest.raises(ProviderLockInvalid):
        write(_stack(tmp_path / "stack", aws="5.100.0"), tmp_path)


def test_what_terraform_has_added_is_kept_until_the_locked_packages_change(tmp_path: Path) -> None:
    folder = _stack(tmp_path / "stack", aws="5.100.0")
    write(folder, tmp_path)
    file = folder / FILE
    verified = file.read_text().replace('    "h1:', '    "h1:verified=",\n    "h1:', 1)
    file.write_text(verified)
    write(folder, tmp_path)
    assert file.read_text() == verified
    (tmp_path / FILE).write_text(OWN)
    write(folder, tmp_path)
    assert "h1:ours=" in file.read_text() and "h1:verified=" not in file.read_text()


def test_the_shipped_file_is_a_part_of_the_wheel() -> None:
    assert f'"{SHIPPED.name}"' in (ROOT / "pyproject.toml").read_text("utf-8")
