"""MSK's broker types in us-east-1: capacity and price of one broker.

Source: ``sizing/data/msk-brokers.us-east-1.json``, from AWS's own MSK sizing script (agent-toolkit-for-aws d6ad2e4), collected
2026-11-21.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

REGION = "us-east-1"
_DATA = Path(__file__).parent.parent / "data" / f"msk-brokers.{REGION}.json"
_EXPRESS = " (Express)"

# Standard broker types with provisioned storage throughput; without it a volume provides at most 250 MiB/s.
# Source: Amazon MSK Developer Guide, "Manage storage throughput for Standard brokers" (AWS's script omits m7g.2xlarge).
DEFAULT_VOLUME_MIBPS = 250.0
_PROVISIONABLE = frozenset(
    {
        *(f"kafka.m5.{size}xlarge" for size in (4, 8, 12, 16, 24)),
        *(f"kafka.m7g.{size}xlarge" for size in (2, 4, 8, 12, 16)),
    }
)
# Only the price of t3.small is known (infracost 95ba4f4), not its limits: it is meant for evaluation and never chosen for a load.
UNMEASURED = {"kafka.t3.small": 0.0456}


class BrokerType(BaseModel):
    """One broker type.

    Args:
        name: MSK's name: ``kafka.m7g.large``, ``express.m7g.large``.
        kind: ``standard``, with EBS volumes, or ``express``, with storage managed by MSK.
        ebs_mibps: throughput of its volumes in MiB/s; standard only.
        network_mibps: network throughput in MiB/s; standard only.
        ingress_mibps: maximum ingress of one broker in MiB/s; express only.
        recommended_partitions: recommended partitions per broker, replicas included.
        max_partitions: hard limit of partitions per broker, replicas included.
        usd_per_h: price of one broker.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    name: str
    kind: Literal["standard", "express"]
    ebs_mibps: float = 0
    network_mibps: float = 0
    ingress_mibps: float = 0
    recommended_partitions: int
    max_partitions: int
    usd_per_h: float

    @property
    def provisionable(self) -> bool:
        """Whether its volumes support provisioned throughput."""
        return self.name in _PROVISIONABLE


@cache
def broker_types() -> tuple[BrokerType, ...]:
    """All types with known limits, standard first, each kind in the order of the data."""
    data: dict[str, dict[str, float]] = json.loads(_DATA.read_text(encoding="utf-8"))
    return tuple(_broker_type(name, row) for name, row in data.items())


def broker_type(name: str) -> BrokerType | None:
    """The type of this name, or None if its limits are unknown."""
    return next((candidate for candidate in broker_types() if candidate.name == name), None)


def _broker_type(name: str, row: dict[str, float]) -> BrokerType:
    express = name.endswith(_EXPRESS)
    return BrokerType(
        name=name.removesuffix(_EXPRESS).replace("kafka.", "express.") if express else name,
        kind="express" if express else "standard",
        ebs_mibps=float(row.get("ebs_throughput_mbs", 0)),
        network_mibps=float(row.get("network_throughput_mbs", 0)),
        ingress_mibps=float(row.get("ingress_mbs", 0)),
        recommended_partitions=int(row["rec_partitions"]),
        max_partitions=int(row["max_partitions"]),
        usd_per_h=float(row["price_per_hr"]),
    )
