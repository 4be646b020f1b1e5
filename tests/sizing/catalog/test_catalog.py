"""The shipped catalog and snapshots."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.sizing.catalog import catalog
from penstock.sizing.catalog.catalog import Catalog, SpotPrice, read, shipped
from penstock.sizing.catalog.errors import BadCatalog, NoShippedCatalog
from penstock.sizing.catalog.instance_type import InstanceType

ROOT = Path(__file__).resolve().parents[3]


def test_the_quick_reading_of_the_shipped_file_is_what_validating_every_row_gives() -> None:
    text = (ROOT / "sizing/data/instance-types.us-east-1.csv").read_text("utf-8")
    assert shipped().types == tuple(InstanceType.model_validate(row) for row in catalog._rows(text))
    assert len(shipped().types) == 1386


def test_names_are_unique_and_sorted() -> None:
    names = [instance.name for instance in shipped().types]
    assert names == sorted(set(names))


def test_the_shipped_catalog_is_read_once() -> None:
    assert shipped() is shipped()


def test_a_type_is_found_by_its_name_and_an_unknown_one_is_none() -> None:
    instance_type = shipped().get("m7g.xlarge")
    assert instance_type is not None
    assert (instance_type.vcpu, instance_type.memory_mib, instance_type.arch) == (4, 16384, "arm64")
    assert shipped().get("m7g.enormous") is None


def test_an_empty_price_is_unknown_and_not_free() -> None:
    unknown = shipped().get("r9g.large")
    assert unknown is not None
    assert unknown.on_demand_usd_per_h is None


@pytest.mark.parametrize(
    ("name", "category", "generation", "family", "size"),
    [
        ("m7g.xlarge", "m", 7, "m7g", "xlarge"),
        ("c7i-flex.large", "c", 7, "c7i-flex", "large"),
        ("u-6tb1.112xlarge", "u", 1, "u-6tb1", "112xlarge"),
        ("hpc7a.12xlarge", "hpc", 7, "hpc7a", "12xlarge"),
        ("p6-b200.48xlarge", "p", 6, "p6-b200", "48xlarge"),
    ],
)
def test_a_name_gives_category_generation_family_and_size(name: str, category: str, generation: int, family: str, size: str) -> None:
    instance_type = shipped().get(name)
    assert instance_type is not None
    assert (instance_type.category, instance_type.generation, instance_type.family, instance_type.size) == (
        category,
        generation,
        family,
        size,
    )


def test_every_shipped_name_is_within_the_scheme() -> None:
    assert all(instance.category and instance.generation for instance in shipped().types)


def test_a_snapshot_comes_back_as_it_was_written() -> None:
    few = Catalog(
        region="eu-central-1",
        date="2026-11-21",
        source="AWS",
        types=shipped().types[:3],
        spot={"a1.large": (SpotPrice(zone="eu-central-1a", usd_per_h=0.02),)},
    )
    assert read(few.model_dump_json()) == few


@pytest.mark.parametrize("text", ["", "[]", "{}", "nonsense", '{"region": "x", "date": "2026", "source": "", "types": [{}]}', "\x00"])
def test_what_is_no_snapshot_is_rejected_with_a_code(text: str) -> None:
    with pytest.raises(BadCatalog) as caught:
        read(text)
    assert caught.value.code == "SIZ-031"


def test_another_region_is_not_shipped_and_the_error_says_how_to_get_it() -> None:
    with pytest.raises(NoShippedCatalog) as caught:
        shipped("eu-central-1")
    assert caught.value.code == "SIZ-030"
    assert "penstock catalog refresh --region eu-central-1" in caught.value.fix
