from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.sizing.cost.errors import BadPrices, NoShippedPrices
from penstock.sizing.cost.prices import SHIPPED, Prices, read, shipped

ROOT = Path(__file__).resolve().parents[3]


def test_the_shipped_prices_say_where_and_when_they_come_from() -> None:
    prices = shipped()
    assert (prices.region, prices.date) == ("us-east-1", "2026-11-21")
    assert "infracost" in prices.source


def test_every_price_of_the_model_is_in_the_shipped_file_even_where_it_is_unknown() -> None:
    names = json.loads((ROOT / SHIPPED).read_text("utf-8"))
    assert set(names) == set(Prices.model_fields)
    unknown = {name for name, value in names.items() if value is None}
    assert unknown == {"msk_express_storage_usd_per_gib_month"}


def test_what_comes_from_a_document_alone_is_marked() -> None:
    prices = shipped()
    assert prices.price("msk_serverless_in_usd_per_gib").secondary
    assert not prices.price("nat_usd_per_gib").secondary
    assert {name for name in Prices.model_fields if name.startswith("msk_serverless_")} == set(prices.secondary)


def test_brokers_cost_what_the_table_of_their_limits_says() -> None:
    table = json.loads((ROOT / "sizing/data/msk-brokers.us-east-1.json").read_text("utf-8"))
    listed = {
        name if "(Express)" not in name else name.replace("kafka.", "express.").removesuffix(" (Express)"): row["price_per_hr"]
        for name, row in table.items()
        if isinstance(row, dict) and "price_per_hr" in row
    }
    assert listed
    own = shipped().msk_broker_usd_per_h
    assert {name: own.get(name) for name in listed} == listed


def test_a_broker_type_without_a_price_is_unknown() -> None:
    assert shipped().broker("kafka.m9.huge").usd is None


def test_a_region_without_prices_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(NoShippedPrices) as raised:
        shipped("eu-central-1")
    text = raised.value.render()
    assert "error[SIZ-050]" in text
    assert "penstock catalog refresh --region eu-central-1" in text
    assert SHIPPED in text


def test_prices_of_another_region_are_read_and_what_is_left_out_is_unknown() -> None:
    prices = read('{"region": "eu-central-1", "date": "2026-11", "source": "AWS, by hand", "nat_gateway_usd_per_h": 0.052}')
    assert prices.price("nat_gateway_usd_per_h").usd == 0.052
    assert prices.price("nat_usd_per_gib").usd is None


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("", ""),
        ("[]", ""),
        ('{"region": "x", "date": "2026-11-21"}', "source"),
        ('{"region": "x", "date": "yesterday", "source": "y"}', "date"),
        ('{"region": "x", "date": "2026-11-21", "source": "y", "nat_gateway_usd_per_h": -1}', "nat_gateway_usd_per_h"),
        ('{"region": "x", "date": "2026-11-21", "source": "y", "nat_gateway_usd_per_h": 1e999}', "nat_gateway_usd_per_h"),
        ('{"region": "x", "date": "2026-11-21", "source": "y", "nat_hour": 1}', "nat_hour"),
        ('{"region": "x", "date": "2026-11-21", "source": "y", "msk_broker_usd_per_h": {"kafka.t3.small": "?"}}', "msk_broker_usd_per_h"),
        ('{"region": "x", "date": "2026-11-21", "source": "y", "secondary": ["nat"]}', "secondary"),
    ],
)
def test_a_file_that_holds_no_prices_is_an_error_with_its_field(text: str, path: str) -> None:
    with pytest.raises(BadPrices) as raised:
        read(text)
    assert raised.value.path.startswith(path)
    assert raised.value.need and raised.value.fix
