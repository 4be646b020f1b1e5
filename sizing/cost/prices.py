"""Prices of AWS services in one region at one date, except EC2 instances, whose prices are in the catalog of instance types."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from penstock.sizing.cost.errors import BadPrices, NoShippedPrices

SHIPPED_REGION = "us-east-1"

SHIPPED = f"sizing/data/prices.{SHIPPED_REGION}.json"

_ROOT = Path(__file__).parent.parent.parent

# In USD; None: unknown, and a bill that needs it is a lower bound.
Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)] | None


class Prices(BaseModel):
    """The prices of one region, before tax and without discounts; omitted fields are unknown.

    A GiB is 2^30 bytes, which AWS's price lists call a GB (source: Amazon S3's FAQ, "How much does S3 cost?"; assumed to apply to the
    other services too).

    Args:
        region: AWS region.
        date: ISO date of retrieval: ``2026-11-21``.
        source: source of the prices, for display.
        secondary: names of the fields that come from a document instead of AWS's own data.
        eks_standard_usd_per_h: USD per cluster-hour with a Kubernetes version in standard support.
        eks_extended_usd_per_h: USD per cluster-hour with a version in extended support.
        nat_gateway_usd_per_h: USD per gateway-hour.
        nat_usd_per_gib: USD per GiB through a NAT gateway.
        gp3_usd_per_gib_month: USD per GiB-month of a gp3 volume.
        gp3_usd_per_iops_month: USD per IOPS-month above 3,000.
        gp3_usd_per_mibps_month: USD per MiB/s-month above 125.
        s3_put_usd_per_1000: USD per 1,000 PUT, COPY, POST or LIST requests.
        s3_get_usd_per_1000: USD per 1,000 GET and other requests.
        s3_standard_usd_per_gib_month: USD per GiB-month of the first 50 TB.
        zone_crossing_usd_per_gib_each_direction: USD per GiB from one zone to another; charged once for egress and once for ingress.
        msk_broker_usd_per_h: USD per broker-hour by broker type: ``kafka.m7g.large``, ``express.m7g.large``.
        msk_storage_usd_per_gib_month: USD per GiB-month of a standard broker's volume.
        msk_tiered_usd_per_gib_month: USD per GiB-month of tiered storage.
        msk_throughput_usd_per_mibps_month: USD per MiB/s-month of provisioned storage throughput.
        msk_express_storage_usd_per_gib_month: USD per GiB-month stored by Express brokers.
        msk_express_in_usd_per_gib: USD per GiB written to Express brokers.
        msk_serverless_cluster_usd_per_h: USD per cluster-hour.
        msk_serverless_partition_usd_per_h: USD per partition-hour.
        msk_serverless_in_usd_per_gib: USD per GiB written.
        msk_serverless_out_usd_per_gib: USD per GiB read.
        msk_serverless_storage_usd_per_gib_month: USD per GiB-month.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    region: Annotated[str, Field(min_length=1)]
    date: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}(-[0-9]{2})?$")]
    source: Annotated[str, Field(min_length=1)]
    secondary: tuple[str, ...] = ()
    eks_standard_usd_per_h: Usd = None
    eks_extended_usd_per_h: Usd = None
    nat_gateway_usd_per_h: Usd = None
    nat_usd_per_gib: Usd = None
    gp3_usd_per_gib_month: Usd = None
    gp3_usd_per_iops_month: Usd = None
    gp3_usd_per_mibps_month: Usd = None
    s3_put_usd_per_1000: Usd = None
    s3_get_usd_per_1000: Usd = None
    s3_standard_usd_per_gib_month: Usd = None
    zone_crossing_usd_per_gib_each_direction: Usd = None
    msk_broker_usd_per_h: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = {}
    msk_storage_usd_per_gib_month: Usd = None
    msk_tiered_usd_per_gib_month: Usd = None
    msk_throughput_usd_per_mibps_month: Usd = None
    msk_express_storage_usd_per_gib_month: Usd = None
    msk_express_in_usd_per_gib: Usd = None
    msk_serverless_cluster_usd_per_h: Usd = None
    msk_serverless_partition_usd_per_h: Usd = None
    msk_serverless_in_usd_per_gib: Usd = None
    msk_serverless_out_usd_per_gib: Usd = None
    msk_serverless_storage_usd_per_gib_month: Usd = None

    def price(self, name: str) -> Price:
        """Looks up a price by the name of its field, with its basis.

        Args:
            name: name of a field above that holds a single price.
        """
        return Price(name=name, usd=getattr(self, name), secondary=name in self.secondary)

    def broker(self, broker_type: str) -> Price:
        """The price of a broker-hour; unknown for a broker type without a price."""
        name = "msk_broker_usd_per_h"
        return Price(name=f"{name}.{broker_type}", usd=self.msk_broker_usd_per_h.get(broker_type), secondary=name in self.secondary)


class Price(BaseModel):
    """One price.

    Args:
        name: field in `Prices`, whose name includes the unit.
        usd: None: unknown.
        secondary: whether it comes from a document instead of AWS's own data.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    usd: Usd
    secondary: bool = False


@cache
def shipped(region: str = SHIPPED_REGION) -> Prices:
    """The shipped prices, loaded once.

    Raises:
        NoShippedPrices: SIZ-050, for a region other than us-east-1.
    """
    if region != SHIPPED_REGION:
        fix = (
            f"provide a price file for {region} in the format of {SHIPPED} (omitted prices are unknown); "
            f"for instance prices: penstock catalog refresh --region {region}"
        )
        raise NoShippedPrices(path="region", given=region, need=f"{SHIPPED_REGION}, the only shipped region", fix=fix)
    return read((_ROOT / SHIPPED).read_text("utf-8"))


def read(text: str) -> Prices:
    """Loads prices from JSON.

    Raises:
        BadPrices: SIZ-051, with the first fault.
    """
    try:
        prices = Prices.model_validate_json(text)
    except ValidationError as fault:
        first = fault.errors(include_url=False)[0]
        path = ".".join(str(part) for part in first["loc"])
        raise BadPrices(path=path, need=first["msg"], fix=f"see {SHIPPED} for the formatat") from None
    unknown = [name for name in prices.secondary if name not in Prices.model_fields]
    if unknown:
        raise BadPrices(path="secondary", given=unknown[0], need="the name of a price", fix="use a field of the same file")
    return prices
