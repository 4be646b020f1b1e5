"""The service quotas of an environment's account."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from penstock.infra.parts.part import Part


class Quotas(Part):
    """Service quotas of the account in this region; those that are None are not checked against the plan.

    Args:
        on_demand_vcpus: EC2's "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", L-1216C47A.
        spot_vcpus: EC2's "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", L-34B43A08.
        msk_brokers: MSK's brokers per account.
    """

    on_demand_vcpus: Annotated[int, Field(ge=0)] | None = None
    spot_vcpus: Annotated[int, Field(ge=0)] | None = None
    msk_brokers: Annotated[int, Field(ge=0)] | None = None
