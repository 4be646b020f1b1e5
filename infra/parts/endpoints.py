"""Endpoints of an emulated AWS."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from penstock.infra.parts.part import Part

ENDPOINT_PATTERN = r"^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?/?$"
Endpoint = Annotated[str, Field(pattern=ENDPOINT_PATTERN)]


class Endpoints(Part):
    """Endpoints of an emulated AWS; all requests of the stacks go there and nowhere else.

    Args:
        aws: the default URL of every service.
        services: URLs of services with another endpoint, by the AWS provider's name of the service, such as ``eks``.
    """

    aws: Endpoint
    services: dict[Annotated[str, Field(pattern=r"^[a-z0-9]+$")], Endpoint] = {}

    def of(self, service: str) -> str:
        """The URL of one service.

        Args:
            service: the AWS provider's name of the service.
        """
        return self.services.get(service, self.aws)
