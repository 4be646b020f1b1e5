"""AWS Price List for moto 5.2.5, which has none: ``pricing:GetProducts`` for EC2 instances.

The instance types and prices are those of the shipped catalog; regions other than the catalog's have no products. In addition to the
hourly on-demand price on Linux, the list contains, like AWS's, entries that an imprecise query would match: Windows, unused reserved
capacity, and dedicated tenancy. Requests and responses use botocore's own model of the service.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any

from moto import backend_index
from moto.core.base_backend import BackendDict, BaseBackend
from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult, BaseResponse, PaginatedResult

from penstock.sizing.catalog.catalog import shipped
from penstock.sizing.catalog.instance_type import InstanceType

SERVICE = "pricing"
_HOSTS = r"https?://(?:api\.)?pricing\.(.+)\.amazonaws\.com"
_EC2 = "AmazonEC2"


class InvalidParameterException(ServiceException):
    """The service's error response; defined here, because moto looks up its shape by the class's module."""

    code = "InvalidParameterException"


class PricingBackend(BaseBackend):
    """The price list, the same in each region that has the service."""

    @property
    def _url_module(self) -> Any:
        return SimpleNamespace(url_bases=[_HOSTS], url_paths={"{0}/$": PricingResponse.dispatch})


class PricingResponse(BaseResponse):
    """Supported operations; all others are rejected as not implemented."""

    def __init__(self) -> None:
        super().__init__(service_name=SERVICE)
        self.automated_parameter_parsing = True

    def get_products(self) -> ActionResult:
        """GetProducts: the products that match all filters, as JSON strings."""
        if self._get_param("ServiceCode") != _EC2:
            raise InvalidParameterException("The service code is not known here")
        filters: list[Mapping[str, str]] = self._get_param("Filters", [])
        if any(asked["Type"] != "TERM_MATCH" for asked in filters):
            raise InvalidParameterException("Only filters of the type TERM_MATCH are known here")
        wanted = {asked["Field"]: asked["Value"] for asked in filters}
        products = [json.dumps(product) for product in _products() if _meets(product, wanted)]
        return PaginatedResult({"FormatVersion": "aws_v1", "PriceList": products})


pricing_backends = BackendDict(PricingBackend, SERVICE)


def add() -> None:
    """Register the service with moto in this process."""
    # moto looks up a service by the name of one of its own modules.
    sys.modules[f"moto.{SERVICE}"] = sys.modules[__name__]
    backend_index.backend_url_patterns.append((SERVICE, re.compile(_HOSTS)))


def _meets(product: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    described = {**product["product"]["attributes"], "productFamily": product["product"]["productFamily"]}
    return all(described.get(field) == value for field, value in wanted.items())


@cache
def _products() -> tuple[dict[str, Any], ...]:
    catalog = shipped()
    return tuple(product for kind in catalog.types if kind.on_demand_usd_per_h for product in _offers(kind, catalog.region))


def _offers(kind: InstanceType, region: str) -> Iterator[dict[str, Any]]:
    usd_per_h = kind.on_demand_usd_per_h or 0.0
    own = "Dedicated" if kind.bare_metal else "Shared"
    yield _product(kind, region, usd_per_h, tenancy=own)
    yield _product(kind, region, usd_per_h * 1.5, tenancy=own, operatingSystem="Windows")
    yield _product(kind, region, usd_per_h, tenancy=own, capacitystatus="UnusedCapacityReservation")
    if not kind.bare_metal:
        yield _product(kind, region, usd_per_h * 1.06, tenancy="Dedicated")


def _product(kind: InstanceType, region: str, usd_per_h: float, **attributes: str) -> dict[str, Any]:
    described = {
        "instanceType": kind.name,
        "regionCode": region,
        "operatingSystem": "Linux",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
        "vcpu": str(kind.vcpu),
        **attributes,
    }
    family = "Compute Instance (bare metal)" if kind.bare_metal else "Compute Instance"
    sku = re.sub(r"\W", "", "".join(described.values())).upper()
    dimension = {"unit": "Hrs", "pricePerUnit": {"USD": f"{usd_per_h:.10f}"}}
    term = {"sku": sku, "priceDimensions": {f"{sku}.T.D": dimension}}
    return {
        "product": {"sku": sku, "productFamily": family, "attributes": described},
        "serviceCode": _EC2,
        "terms": {"OnDemand": {f"{sku}.T": term}},
        "version": shipped().date,
    }
