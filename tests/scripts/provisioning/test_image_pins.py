"""Images of others that pods pull by their tags alone, as `penstock doctor` reports them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.infra.environment_file import load
from penstock.infra.image_lock import FILE
from penstock.infra.manifests.fluent_bit import IMAGE as FLUENT_BIT
from penstock.infra.manifests.prometheus import IMAGE as PROMETHEUS
from penstock.scripts.provisioning import image_pins
from penstock.scripts.provisioning.finding import MISSING, OK, OPTIONAL
from tests.infra.environments import BARE


def test_an_image_without_a_digest_is_named_with_how_to_pin_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (found,) = image_pins.look(load("production"))
    assert (found.state, found.said) == (OPTIONAL, f"pulled by tag: {FLUENT_BIT}, {PROMETHEUS}")
    assert found.fix == "penstock image lock --environment production, and commit images.lock.json"
    (tmp_path / FILE).write_text(json.dumps({"images": {name: {"digest": f"sha256:{'1' * 64}"} for name in (FLUENT_BIT, PROMETHEUS)}}))
    (found,) = image_pins.look(load("production"))
    assert (found.state, found.said) == (OK, "3 pulled by digest")


def test_a_file_that_is_no_lock_is_missing_with_its_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / FILE).write_text("{")
    (found,) = image_pins.look(load("production"))
    assert found.state == MISSING and found.said.startswith("INF-073: ")


def test_an_environment_whose_pods_pull_nothing_has_no_finding() -> None:
    assert image_pins.look(load(BARE)) == []
    assert image_pins.look(load("production").at("http://127.0.0.1:1")) == []
