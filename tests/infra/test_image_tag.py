from __future__ import annotations

import pytest

from penstock.infra.environment_file import load
from penstock.infra.errors import BadImageTag
from penstock.infra.image_tag import VARIABLE, image_tag


def test_the_environment_names_the_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert image_tag(load("production")) == "0.1.0"


def test_a_pipeline_names_the_image_that_it_has_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1.4.2-9f2c1ab")
    assert image_tag(load("production")) == "1.4.2-9f2c1ab"


@pytest.mark.parametrize("tag", ["-1", "a b", "x" * 129, "repo:1", "ä"])
def test_an_invalid_tag_is_reported(monkeypatch: pytest.MonkeyPatch, tag: str) -> None:
    monkeypatch.setenv(VARIABLE, tag)
    with pytest.raises(BadImageTag) as raised:
        image_tag(load("production"))
    assert raised.value.given == tag
