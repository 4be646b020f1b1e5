from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.infra.errors import ImageLockInvalid
from penstock.infra.image_lock import FILE, SHIPPED, ImageLock, Locked, digest_of, locked, pinned, read, text
from penstock.infra.images_of_others import images
from penstock.infra.karpenter_charts import charts
from penstock.infra.manifests.fluent_bit import IMAGE as FLUENT_BIT
from penstock.scripts.layout import ROOT

DIGEST = f"sha256:{'a' * 64}"


@pytest.fixture
def production() -> Environment:
    return load("production")


def test_every_chart_and_image_of_others_is_pinned_or_has_a_reason(production: Environment) -> None:
    shipped = read(SHIPPED)
    assert set(shipped.charts) == {chart.published for chart in charts(production)}
    assert set(shipped.images) == set(images(production))
    assert all(one.digest or one.unpinned for one in (*shipped.charts.values(), *shipped.images.values()))
    # The only ones: a further one that is not pinned is to be found out, not to be listed.
    unpinned = {name for name, one in shipped.images.items() if one.digest is None}
    assert unpinned == {"cr.fluentbit.io/fluent/fluent-bit:4.2.3", "quay.io/prometheus/prometheus:v3.13.5"}
    assert all(one.digest for one in shipped.charts.values())


def test_an_image_is_pulled_by_its_digest_from_its_mirror_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert pinned(FLUENT_BIT, {}) == FLUENT_BIT
    (tmp_path / FILE).write_text(json.dumps({"images": {FLUENT_BIT: {"digest": DIGEST}}}))
    assert pinned(FLUENT_BIT, {}) == f"{FLUENT_BIT}@{DIGEST}"
    assert pinned(FLUENT_BIT, {"cr.fluentbit.io": "mirror.example/x"}) == f"mirror.example/x/fluent/fluent-bit:4.2.3@{DIGEST}"


def test_a_repositorys_own_digest_comes_before_the_shipped_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    controller = "public.ecr.aws/karpenter/controller:1.14.1"
    shipped = digest_of(controller)
    assert shipped is not None and shipped != DIGEST
    (tmp_path / FILE).write_text(text(ImageLock(images={controller: Locked(digest=DIGEST)})))
    assert digest_of(controller) == DIGEST
    assert locked().charts == read(SHIPPED).charts


@pytest.mark.parametrize(
    "content",
    ["{", '{"images": {"a": {"digest": "sha256:1"}}}', '{"images": {"a": {}}}', '{"more": 1}', '{"images": {"a": {"unpinned": ""}}}'],
)
def test_a_file_that_is_no_lock_is_refused_with_how_to_write_it(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(ImageLockInvalid) as raised:
        read(tmp_path / FILE)
    assert raised.value.code == "INF-073"
    assert "penstock image lock" in raised.value.fix


def test_what_is_written_is_read_back_and_the_shipped_file_is_written_alike(tmp_path: Path) -> None:
    lock = read(SHIPPED)
    (tmp_path / FILE).write_text(text(lock))
    assert read(tmp_path / FILE) == lock
    assert f'"{SHIPPED.name}"' in (ROOT / "pyproject.toml").read_text("utf-8")
