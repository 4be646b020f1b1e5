from __future__ import annotations

from pathlib import Path

import pytest

from penstock.scripts.emulation.errors import LocalStackNotReached
from penstock.scripts.emulation.localstack import ENDPOINT_VARIABLE, LocalStack
from penstock.scripts.emulation.localstack_python import VARIABLE
from penstock.scripts.errors import MissingTool


def test_without_its_python_the_error_names_it_and_the_ways_out(tmp_path: Path) -> None:
    own = LocalStack(folder=tmp_path / "data", log=tmp_path / "log", environment={VARIABLE: str(tmp_path / "nothing")})
    with pytest.raises(MissingTool) as raised:
        own.start()
    assert raised.value.exit_code == 4
    assert "3.13" in raised.value.need
    assert VARIABLE in raised.value.fix
    assert ENDPOINT_VARIABLE in raised.value.fix


def test_a_named_endpoint_where_nobody_listens_is_an_error_and_none_is_started(tmp_path: Path) -> None:
    own = LocalStack(folder=tmp_path / "data", log=tmp_path / "log", environment={ENDPOINT_VARIABLE: "http://127.0.0.1:9"})
    with pytest.raises(LocalStackNotReached) as raised:
        own.start()
    assert (raised.value.path, raised.value.exit_code) == ("http://127.0.0.1:9", 5)
    assert list(tmp_path.iterdir()) == []


def test_an_address_is_asked_for_too_early(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has not been started"):
        _ = LocalStack(folder=tmp_path, log=tmp_path / "log").services
