"""The instance types of a region with today's prices, read from AWS: what ``penstock catalog refresh`` writes.

Needs ``ec2:DescribeInstanceTypes``, ``ec2:DescribeInstanceTypeOfferings``, ``ec2:DescribeSpotPriceHistory`` and ``pricing:GetProducts``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from penstock.scripts.errors import AwsNotReached, AwsRefused, CredentialsMissing
from penstock.scripts.planning.instance_facts import instance_type
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning.aws_access import NO_CREDENTIALS, SIGN_IN, one_line
from penstock.sizing.catalog.catalog import Catalog, SpotPrice

# Source: AWS Price List Query API: endpoints in few regions, for all regions; China has its own.
PRICING_REGION = "us-east-1"
PRICING_REGION_CHINA = "cn-northwest-1"
# Source: Amazon EC2 API, DescribeSpotPriceHistory: Linux outside and inside of a VPC; an account sees one of them.
SPOT_PRODUCTS = ("Linux/UNIX", "Linux/UNIX (Amazon VPC)")
# Source: AWS Price List, attributes of AmazonEC2; the same query as Karpenter's (karpenter-provider-aws v1.14.1, pkg/providers/pricing).
_LINUX_BY_THE_HOUR = {"operatingSystem": "Linux", "preInstalledSw": "NA", "capacitystatus": "Used", "marketoption": "OnDemand"}
_MACHINES = {"productFamily": "Compute Instance", "tenancy": "Shared"}
_BARE_METAL = {"productFamily": "Compute Instance (bare metal)", "tenancy": "Dedicated"}

CONNECT_LIMIT_S = 10
READ_LIMIT_S = 120


class SpotQuote(NamedTuple):
    """One spot price at one time."""

    name: str
    zone: str
    usd_per_h: float
    at: datetime


def fetch(region: str, now: datetime, steps: Steps) -> Catalog:
    """Reads the catalog from AWS.

    Args:
        region: AWS region.
        now: the time of the snapshot, with its zone; spot prices are those of this moment.
        steps: gets a line per request.

    Returns:
        The catalog, dated by the day in UTC. Missing values are None: a machine without a price has none.

    Raises:
        CredentialsMissing: TOOL-030.
        AwsRefused: RUN-020.
        AwsNotReached: RUN-021.
    """
    with _aws(region):
        ec2, pricing = _clients(region)
        answers = _instance_types(ec2, steps)
        zones = _zones(ec2, steps)
        on_demand = _on_demand(pricing, region, steps)
        spot = _spot(ec2, now, steps)
        source = _source(str(ec2.meta.endpoint_url))
    read = (instance_type(answer, zones.get(answer["InstanceType"], ()), on_demand.get(answer["InstanceType"])) for answer in answers)
    types = sorted((kind for kind in read if kind is not None), key=lambda kind: kind.name)
    names = {kind.name for kind in types}
    return Catalog(
        region=region,
        date=now.astimezone(UTC).date().isoformat(),
        source=source,
        types=tuple(types),
        spot={name: quotes for name, quotes in sorted(spot.items()) if name in names},
    )


def pricing_region(region: str) -> str:
    """The region whose price list has the prices of a region."""
    return PRICING_REGION_CHINA if region.startswith("cn-") else PRICING_REGION


def hourly_usd(product: str) -> tuple[str, float] | None:
    """The hourly price of a machine.

    Args:
        product: an element of ``PriceList``, a JSON text.

    Returns:
        The instance type and USD per hour; None if the list has no price in USD above 0, as for machines that can only be reserved.
    """
    read = json.loads(product)
    name = read["product"]["attributes"].get("instanceType")
    dimensions = (
        dimension for term in read.get("terms", {}).get("OnDemand", {}).values() for dimension in term["priceDimensions"].values()
    )
    prices = [float(dimension["pricePerUnit"].get("USD", 0)) for dimension in dimensions if dimension["unit"] == "Hrs"]
    known = [usd for usd in prices if usd > 0]
    return (name, min(known)) if name and known else None


def latest(quotes: Iterable[SpotQuote]) -> dict[str, tuple[SpotPrice, ...]]:
    """The newest price of each type and zone, by type; the zones sorted."""
    newest: dict[tuple[str, str], SpotQuote] = {}
    for quote in quotes:
        key = (quote.name, quote.zone)
        if key not in newest or newest[key].at < quote.at:
            newest[key] = quote
    by_type: dict[str, tuple[SpotPrice, ...]] = {}
    for (name, zone), quote in sorted(newest.items()):
        by_type[name] = (*by_type.get(name, ()), SpotPrice(zone=zone, usd_per_h=quote.usd_per_h))
    return by_type


def _clients(region: str) -> tuple[Any, Any]:
    session = boto3.Session(region_name=region)
    # The number of retries is the user's choice: AWS_MAX_ATTEMPTS.
    config = Config(retries={"mode": "standard"}, connect_timeout=CONNECT_LIMIT_S, read_timeout=READ_LIMIT_S)
    return session.client("ec2", config=config), session.client("pricing", region_name=pricing_region(region), config=config)


def _instance_types(ec2: Any, steps: Steps) -> list[Mapping[str, Any]]:
    with steps.at("types", "the instance types") as step:
        answers = [answer for page in _pages(ec2, "describe_instance_types") for answer in page["InstanceTypes"]]
        step.said = f"{len(answers):,} instance types"
    return answers


def _zones(ec2: Any, steps: Steps) -> dict[str, list[str]]:
    zones: dict[str, list[str]] = {}
    with steps.at("zones", "the zones of each type") as step:
        for page in _pages(ec2, "describe_instance_type_offerings", LocationType="availability-zone"):
            for offering in page["InstanceTypeOfferings"]:
                zones.setdefault(offering["InstanceType"], []).append(offering["Location"])
        step.said = f"{len({zone for of_type in zones.values() for zone in of_type})} zones"
    return zones


def _on_demand(pricing: Any, region: str, steps: Steps) -> dict[str, float]:
    prices: dict[str, float] = {}
    with steps.at("on-demand", "the on-demand prices") as step:
        for kind in (_MACHINES, _BARE_METAL):
            asked = {**_LINUX_BY_THE_HOUR, **kind, "regionCode": region}
            filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in asked.items()]
            for page in _pages(pricing, "get_products", ServiceCode="AmazonEC2", Filters=filters):
                prices |= dict(price for product in page["PriceList"] if (price := hourly_usd(product)))
        step.said = f"on-demand prices of {len(prices):,} types"
    return prices


def _spot(ec2: Any, now: datetime, steps: Steps) -> dict[str, tuple[SpotPrice, ...]]:
    with steps.at("spot", "the spot prices") as step:
        pages = _pages(ec2, "describe_spot_price_history", StartTime=now, ProductDescriptions=list(SPOT_PRODUCTS))
        prices = latest(_quote(answer) for page in pages for answer in page["SpotPriceHistory"])
        step.said = f"spot prices of {len(prices):,} types"
    return prices


def _quote(answer: Mapping[str, Any]) -> SpotQuote:
    return SpotQuote(answer["InstanceType"], answer["AvailabilityZone"], float(answer["SpotPrice"]), answer["Timestamp"])


def _pages(client: Any, operation: str, **asked: Any) -> Iterator[Mapping[str, Any]]:
    yield from client.get_paginator(operation).paginate(**asked)


def _source(endpoint: str) -> str:
    """The source of the facts; an endpoint other than AWS's is named, because its prices may be fictitious."""
    host = urlsplit(endpoint).hostname or ""
    own = host.endswith((".amazonaws.com", ".amazonaws.com.cn", ".api.aws"))
    return "EC2 and the AWS Price List" if own else f"EC2 and the price list of {endpoint}, which is not AWS"


@contextmanager
def _aws(region: str) -> Iterator[None]:
    """boto3's exceptions as Penstock errors."""
    try:
        yield
    except NO_CREDENTIALS as error:
        fix = f"{SIGN_IN}, and retry"
        raise CredentialsMissing(
            path="AWS", given=one_line(error), need="credentials with read access to EC2 and the price list", fix=fix
        ) from None
    except ClientError as error:
        code, said = error.response["Error"].get("Code", ""), error.response["Error"].get("Message", "")
        need = "ec2:DescribeInstanceTypes, DescribeInstanceTypeOfferings and DescribeSpotPriceHistory, and pricing:GetProducts"
        fix = f"check that the credentials are valid and have these permissions, and that {region} is enabled for the account"
        raise AwsRefused(path=f"{error.operation_name} in {region}", given=f"{code}: {said}", need=need, fix=fix) from None
    except BotoCoreError as error:
        fix = f"check that {region} is an AWS region and that this machine can reach AWS, and retry"
        raise AwsNotReached(path=region, given=one_line(error), need="a response from AWS", fix=fix) from None
