"""Names of environments of one account."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.infra.environment_file import FOLDER, load
from penstock.infra.environment_names import refuse_beginnings
from penstock.infra.errors import NamesBeginAlike

_TEXT = (FOLDER / "local.yaml").read_text(encoding="utf-8")


def _written(folder: Path, name: str, account: str = "111122223333") -> Path:
    text = _TEXT.replace("name: local", f"name: {name}", 1).replace('"000000000000"', f'"{account}"')
    file = folder / f"{name}.yaml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(("name", "other"), [("prod", "prod-eu"), ("prod-eu", "prod"), ("a", "a-b-c")])
def test_neither_may_begin_with_the_other(tmp_path: Path, name: str, other: str) -> None:
    _written(tmp_path, other)
    with pytest.raises(NamesBeginAlike) as raised:
        refuse_beginnings(load(_written(tmp_path, name)))
    assert (raised.value.code, raised.value.path, raised.value.given) == ("INF-055", "metadata.name", name)
    assert f"{other}.yaml is {other}" in raised.value.need


@pytest.mark.parametrize("other", ["production", "dev", "prod2-eu", "eu-prod"])
def test_other_names_are_fine(tmp_path: Path, other: str) -> None:
    _written(tmp_path, other)
    refuse_beginnings(load(_written(tmp_path, "prod")))


def test_in_accounts_of_their_own_names_may_begin_alike(tmp_path: Path) -> None:
    _written(tmp_path, "prod-eu", "444455556666")
    refuse_beginnings(load(_written(tmp_path, "prod")))


def test_files_that_are_no_environments_are_passed_by(tmp_path: Path) -> None:
    (tmp_path / "prod-job.yaml").write_text("kind: StreamingJob\nmetadata: {name: prod-job}\nspec: {account: 1}\n", encoding="utf-8")
    (tmp_path / "broken.yaml").write_text("kind: [", encoding="utf-8")
    (tmp_path / "list.yaml").write_text("- 1\n", encoding="utf-8")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    refuse_beginnings(load(_written(tmp_path, "prod")))
