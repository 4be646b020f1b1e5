"""The shapes that a bill consists of; `penstock.sizing.cost.bill` fills them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.sizing.cost.month import HOURS_PER_MONTH
from penstock.sizing.cost.node_prices import Basis
from penstock.sizing.cost.usd import UsdRange, total

Service = Literal["EC2", "EBS", "EKS", "MSK", "S3", "NAT", "Data transfer"]


class _Billed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)


class Line(_Billed):
    """One line of a bill.

    Args:
        service: of AWS.
        item: what is paid for; with the service it tells a line from another.
        quantity: how much of `unit`.
        unit: ``node``, ``GiB``, ``1,000 requests``.
        unit_price_usd: of one unit for `per`; None: unknown.
        per: the time that the price is for.
        usd_per_h: None: unknown.
        usd_per_month: of 730 hours; None: unknown.
        basis: ``listed`` in AWS's own data, ``secondary`` from a document, ``assumed`` or ``unknown``.
        complete: whether nothing is missing in the amounts.
        price_source: where the price comes from.
        price_date: ISO text of when it was read.
        note: what a reader should know.
    """

    service: Service
    item: str
    quantity: float
    unit: str
    unit_price_usd: UsdRange | None
    per: Literal["h", "month"]
    usd_per_h: UsdRange | None
    usd_per_month: UsdRange | None
    basis: Basis
    complete: bool
    price_source: str
    price_date: str
    note: str = ""


class Sum(_Billed):
    """Several lines together.

    Args:
        usd_per_h: of the lines whose price is known.
        usd_per_month: the same for 730 hours.
        complete: whether every price is known; else the sum is an "at least".
        unknown: the lines that miss a price, ``service: item``.
    """

    usd_per_h: UsdRange
    usd_per_month: UsdRange
    complete: bool
    unknown: tuple[str, ...] = ()


class Bill(_Billed):
    """What a usage costs, before tax and without discounts.

    Args:
        region: AWS region.
        hours_per_month: that a month counts.
        lines: in the order of the services.
        services: the sum of each service that is used, in the same order.
        total: the sum of all the lines.
        assumptions: what the amounts rest on beside prices and usage, in sentences.
    """

    region: str
    hours_per_month: int = HOURS_PER_MONTH
    lines: tuple[Line, ...]
    services: dict[Service, Sum]
    total: Sum
    assumptions: tuple[str, ...] = ()


def sum_of(lines: Sequence[Line]) -> Sum:
    """The sum of lines, over what is known of them."""
    return Sum(
        usd_per_h=total(line.usd_per_h for line in lines if line.usd_per_h is not None),
        usd_per_month=total(line.usd_per_month for line in lines if line.usd_per_month is not None),
        complete=all(line.complete for line in lines),
        unknown=tuple(f"{line.service}: {line.item}" for line in lines if not line.complete),
    )
