from __future__ import annotations

import platform
from pathlib import Path

import pytest

from penstock.scripts.errors import ProviderNotFound
from penstock.scripts.provisioning.provider_mirror import PROVIDER, find

VERSION = "5.100.0"
MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine().lower(), platform.machine().lower())
SYSTEM = f"{platform.system().lower()}_{MACHINE}"


def _mirror(folder: Path, version: str = VERSION) -> Path:
    (folder / PROVIDER / version / SYSTEM).mkdir(parents=True)
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A user without a CLI configuration, on a system without Terraform's mirror folders."""
    (tmp_path / "home").mkdir()
    return {"HOME": str(tmp_path / "home"), "XDG_DATA_DIRS": str(tmp_path / "system")}


def test_the_projects_variable_comes_first(tmp_path: Path, environment: dict[str, str]) -> None:
    named = _mirror(tmp_path / "named")
    _mirror(tmp_path / "home/.terraform.d/plugins")
    own = tmp_path / "own.tfrc"
    own.write_text("provider_installation {}")
    search = find(VERSION, {**environment, "PENSTOCK_TERRAFORM_MIRROR": str(named), "TF_CLI_CONFIG_FILE": str(own)}, prefixes=())
    assert search.folder == named
    assert search.configuration is not None
    assert f'path    = "{named}"' in search.configuration


def test_a_variable_that_names_a_folder_without_the_provider_is_an_error(tmp_path: Path, environment: dict[str, str]) -> None:
    other = _mirror(tmp_path / "other", version="5.99.0")
    with pytest.raises(ProviderNotFound) as raised:
        find(VERSION, {**environment, "PENSTOCK_TERRAFORM_MIRROR": str(other)}, prefixes=())
    assert raised.value.path == "PENSTOCK_TERRAFORM_MIRROR"
    assert raised.value.need == f"{PROVIDER}/{VERSION}/{SYSTEM} in it"
    assert raised.value.exit_code == 4


def test_the_users_own_configuration_stays_in_force(tmp_path: Path, environment: dict[str, str]) -> None:
    _mirror(tmp_path / "home/.terraform.d/plugins")
    own = tmp_path / "own.tfrc"
    own.write_text("")
    assert find(VERSION, {**environment, "TF_CLI_CONFIG_FILE": str(own)}, prefixes=()).configuration is None


def test_a_terraformrc_at_home_stays_in_force_where_it_says_where_providers_come_from(tmp_path: Path, environment: dict[str, str]) -> None:
    own = tmp_path / "home/.terraformrc"
    own.write_text("disable_checkpoint = true")
    assert find(VERSION, environment, prefixes=()).configuration == ""
    own.write_text('provider_installation { filesystem_mirror { path = "/elsewhere" } }')
    assert find(VERSION, environment, prefixes=()).configuration is None


@pytest.mark.parametrize("place", ["home/.terraform.d/plugins", "home/.local/share/terraform/plugins", "system/terraform/plugins"])
def test_terraforms_own_folders_come_next(tmp_path: Path, environment: dict[str, str], place: str) -> None:
    implied = _mirror(tmp_path / place)
    _mirror(tmp_path / "prefix/mirror")
    assert find(VERSION, environment, prefixes=[str(tmp_path / "prefix")]).folder == implied


def test_then_any_folder_below_the_usual_prefixes(tmp_path: Path, environment: dict[str, str]) -> None:
    deep = _mirror(tmp_path / "prefix/a/b/c")
    assert find(VERSION, environment, prefixes=[str(tmp_path / "nowhere"), str(tmp_path / "prefix")]).folder == deep


def test_a_prefix_may_lie_at_home(tmp_path: Path, environment: dict[str, str]) -> None:
    at_home = _mirror(tmp_path / "home/mirrors/terraform")
    assert find(VERSION, environment, prefixes=["~/mirrors"]).folder == at_home


def test_a_folder_with_another_version_is_passed_over(tmp_path: Path, environment: dict[str, str]) -> None:
    _mirror(tmp_path / "prefix/a", version="5.99.0")
    right = _mirror(tmp_path / "prefix/b")
    assert find(VERSION, environment, prefixes=[str(tmp_path / "prefix")]).folder == right


def test_an_archive_is_as_good_as_an_unpacked_provider(tmp_path: Path, environment: dict[str, str]) -> None:
    folder = tmp_path / "prefix" / PROVIDER
    folder.mkdir(parents=True)
    (folder / f"terraform-provider-aws_{VERSION}_{SYSTEM}.zip").write_bytes(b"")
    assert find(VERSION, environment, prefixes=[str(tmp_path / "prefix")]).folder == tmp_path / "prefix"


def test_a_variable_that_names_a_missing_configuration_is_overridden(tmp_path: Path, environment: dict[str, str]) -> None:
    search = find(VERSION, {**environment, "TF_CLI_CONFIG_FILE": str(tmp_path / "missing")}, prefixes=())
    assert search.configuration == ""


def test_the_registry_comes_last_and_every_location_is_reported(tmp_path: Path, environment: dict[str, str]) -> None:
    search = find(VERSION, environment, prefixes=[str(tmp_path / "prefix")])
    assert search.folder is None
    assert search.searched[0] == "PENSTOCK_TERRAFORM_MIRROR (not set)"
    assert str(tmp_path / "home/.terraform.d/plugins") in search.searched
    assert f"below {tmp_path / 'prefix'}" in search.searched
    assert search.searched[-1] == "Terraform's registry"


def test_a_path_with_signs_of_terraforms_language_is_written_as_it_is(tmp_path: Path, environment: dict[str, str]) -> None:
    odd = _mirror(tmp_path / 'with "quotes" and ${braces}')
    configuration = find(VERSION, {**environment, "PENSTOCK_TERRAFORM_MIRROR": str(odd)}, prefixes=()).configuration
    assert configuration is not None
    assert 'with \\"quotes\\" and $${braces}"' in configuration
