from __future__ import annotations

from pathlib import Path

import pytest

from penstock.jobs.errors import UnreadableDocument
from penstock.scripts.planning.price_files import catalog_file, prices_file
from penstock.sizing.catalog.catalog import shipped as shipped_catalog
from penstock.sizing.catalog.errors import BadCatalog
from penstock.sizing.cost.errors import BadPrices
from penstock.sizing.cost.prices import SHIPPED, shipped

ROOT = Path(__file__).resolve().parents[3]


def test_the_shipped_prices_can_be_given_as_a_file() -> None:
    assert prices_file(ROOT / SHIPPED) == shipped()


def test_a_snapshot_is_read_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.json"
    path.write_text(shipped_catalog().model_dump_json(indent=1))
    assert catalog_file(path) == shipped_catalog()


def test_a_file_of_something_else_is_an_error_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "half.json"
    path.write_text('{"region": "us-east-1", "da')
    for read, kind in ((catalog_file, BadCatalog), (prices_file, BadPrices)):
        with pytest.raises(kind) as raised:
            read(path)
        assert raised.value.at is not None and raised.value.at.file == str(path)


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
def test_a_file_that_cannot_be_read_is_an_error_with_its_name(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UnreadableDocument) as raised:
        prices_file(path)
    assert str(path) in raised.value.render()
