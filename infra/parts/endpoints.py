"""Where an emulated AWS answers."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from penstock.infra.parts.part import Part

ENDPOINT_PATTERN = r"^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?/?$"
Endpoint = Annotated[str, Field(pattern=ENDPOINT_PATTERN)]


class Endpoints(Part):
    """Where an emulated AWS answers; all that the stacks use is asked there and nowhere else.

    Args:
        aws: the URL of every service.
        services: of the services that answer elsewhere, by the name that the AWS provider has for them, as ``eks``.
    """

    aws: Endpoint
    services: dict[Annotated[str, Field(pattern=r"^[a-z0-9]+$")], Endpoint] = {}

    def of(self, service: str) -> str:
        """The URL of one service.

        Args:
            service: by the name that the AWS provider has for it.
        """
        return self.services.get(service, self.aws)
