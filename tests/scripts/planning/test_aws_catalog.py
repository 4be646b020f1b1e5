"""What AWS answers, read: the parts that need no AWS."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.scripts.planning.aws_catalog import SpotQuote, hourly_usd, latest, pricing_region
from penstock.scripts.planning.instance_facts import instance_type


def answer(**changes: Any) -> dict[str, Any]:
    """What EC2 says of one instance type, less what the sizing does not ask for."""
    said: dict[str, Any] = {
        "InstanceType": "m9x.large",
        "BareMetal": False,
        "BurstablePerformanceSupported": False,
        "CurrentGeneration": True,
        "Hypervisor": "nitro",
        "VCpuInfo": {"DefaultVCpus": 2},
        "MemoryInfo": {"SizeInMiB": 8192},
        "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]},
        "SupportedUsageClasses": ["on-demand", "spot"],
        "EbsInfo": {"EbsOptimizedInfo": {"BaselineBandwidthInMbps": 650}},
        "NetworkInfo": {
            "Ipv4AddressesPerInterface": 10,
            "DefaultNetworkCardIndex": 0,
            "MaximumNetworkInterfaces": 3,
            "NetworkCards": [
                {"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 3, "BaselineBandwidthInGbps": 0.75, "PeakBandwidthInGbps": 10.0}
            ],
        },
    }
    return said | changes


def product(*prices: dict[str, str], unit: str = "Hrs", name: str = "m9x.large") -> str:
    dimensions = {f"d{at}": {"unit": unit, "pricePerUnit": price} for at, price in enumerate(prices)}
    terms = {"OnDemand": {"t": {"priceDimensions": dimensions}}}
    return json.dumps({"product": {"attributes": {"instanceType": name}}, "terms": terms})


def at(second: int) -> datetime:
    return datetime(2026, 11, 21, 12, 0, second, tzinfo=UTC)


def test_a_type_has_the_interfaces_and_the_bandwidth_of_its_default_card() -> None:
    cards = [
        {"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 2, "BaselineBandwidthInGbps": 50.0, "PeakBandwidthInGbps": 100.0},
        {"NetworkCardIndex": 1, "MaximumNetworkInterfaces": 15, "BaselineBandwidthInGbps": 60.0, "PeakBandwidthInGbps": 200.0},
    ]
    network = {"Ipv4AddressesPerInterface": 50, "DefaultNetworkCardIndex": 1, "MaximumNetworkInterfaces": 17, "NetworkCards": cards}
    read = instance_type(answer(NetworkInfo=network), ["b", "a"], 0.1)
    assert read is not None
    assert (read.enis, read.ipv4_per_eni, read.network_baseline_gbps, read.network_peak_gbps) == (15, 50, 60.0, 200.0)
    assert read.zones == ("a", "b")


def test_a_mac_is_no_node() -> None:
    assert instance_type(answer(ProcessorInfo={"SupportedArchitectures": ["x86_64_mac"]}), [], None) is None


def test_what_aws_does_not_say_is_unknown_and_not_0() -> None:
    said = answer()
    del said["EbsInfo"], said["Hypervisor"]
    read = instance_type(said, [], None)
    assert read is not None
    assert (read.ebs_baseline_mbps, read.hypervisor, read.on_demand_usd_per_h) == (None, "", None)


def test_a_device_told_twice_counts_once() -> None:
    devices = {"NeuronInfo": {"NeuronDevices": [{"Count": 4}]}, "InferenceAcceleratorInfo": {"Accelerators": [{"Count": 4}]}}
    read = instance_type(answer(**devices), [], None)
    assert read is not None and read.accelerators == 4


@pytest.mark.parametrize(("nvme", "gib"), [("required", 75), ("supported", 75), ("unsupported", 0)])
def test_a_local_disk_counts_if_it_is_nvme(nvme: str, gib: int) -> None:
    read = instance_type(answer(InstanceStorageInfo={"NvmeSupport": nvme, "TotalSizeInGB": 75}), [], None)
    assert read is not None and read.local_nvme_gib == gib


def test_a_product_has_its_price_by_the_hour() -> None:
    assert hourly_usd(product({"USD": "0.0960000000"})) == ("m9x.large", 0.096)


@pytest.mark.parametrize(
    "text",
    [
        product({"USD": "0.0000000000"}),
        product({"CNY": "0.9600000000"}),
        product({"USD": "100"}, unit="Quantity"),
        product(),
        json.dumps({"product": {"attributes": {"instanceType": "m9x.large"}}, "terms": {"Reserved": {}}}),
        json.dumps({"product": {"attributes": {}}}),
    ],
)
def test_a_product_without_a_price_in_usd_by_the_hour_has_none(text: str) -> None:
    assert hourly_usd(text) is None


def test_the_newest_spot_price_of_each_zone_counts() -> None:
    quotes = [
        SpotQuote("m9x.large", "b", 0.03, at(1)),
        SpotQuote("m9x.large", "a", 0.05, at(2)),
        SpotQuote("m9x.large", "a", 0.04, at(3)),
        SpotQuote("m9x.large", "a", 0.06, at(1)),
    ]
    (name,) = (result := latest(quotes))
    assert name == "m9x.large"
    assert [(price.zone, price.usd_per_h) for price in result[name]] == [("a", 0.04), ("b", 0.03)]


def test_the_price_list_is_asked_where_it_is() -> None:
    assert pricing_region("eu-central-1") == "us-east-1"
    assert pricing_region("cn-north-1") == "cn-northwest-1"
