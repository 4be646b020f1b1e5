"""The models that make up a bill; computed by `penstock.sizing.cost.bill`."""

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
        service: AWS service.
        item: billed item; service and item identify the line.
        quantity: number of units.
        unit: ``node``, ``GiB``, ``1,000 requests``.
        unit_price_usd: price of one unit for `per`; None: unknown.
        per: period that the unit price covers.
        usd_per_h: amount per hour; None: unknown.
        usd_per_month: amount per month of 730 hours; None: unknown.
        basis: ``listed`` in AWS's own data, ``secondary`` from a document, ``assumed`` or ``unknown``.
        complete: whether the amounts include everything.
        price_source: source of the price.
        price_date: ISO date of retrieval.
        note: remark for the reader.
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
    """The sum of several lines.

    Args:
        usd_per_h: sum over the lines with a known price.
        usd_per_month: the same for 730 hours.
        complete: whether every price is known; otherwise the sum is a lower bound.
        unknown: lines without a price, as ``service: item``.
    """

    usd_per_h: UsdRange
    usd_per_month: UsdRange
    complete: bool
    unknown: tuple[str, ...] = ()


class Bill(_Billed):
    """The cost of a usage, before tax and without discounts.

    Args:
        region: AWS region.
        hours_per_month: hours in a billed month.
        lines: in the order of the services.
        services: subtotal of each service in use, in the same order.
        total: sum of all lines.
        assumptions: assumptions behind the amounts besides prices and usage, as sentences.
    """

    region: str
    hours_per_month: int = HOURS_PER_MONTH
    lines: tuple[Line, ...]
    services: dict[Service, Sum]
    total: Sum
    assumptions: tuple[str, ...] = ()


def sum_of(lines: Sequence[Line]) -> Sum:
    """Sums lines, ignoring unknown prices."""
    return Sum(
        usd_per_h=total(line.usd_per_h for line in lines if line.usd_per_h is not None),
        usd_per_month=total(line.usd_per_month for line in lines if line.usd_per_month is not None),
        complete=all(line.complete for line in lines),
        unknown=tuple(f"{line.service}: {line.item}" for line in lines if not line.complete),
    )
