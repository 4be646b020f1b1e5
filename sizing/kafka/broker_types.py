"""MSK's broker types in us-east-1: what one broker carries and costs.

Source: ``sizing/data/msk-brokers.us-east-1.json``, from AWS's own MSK sizing script (agent-toolkit-for-aws d6ad2e4), collected 2026-11-21.
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

# What standard brokers may have provisioned storage throughput; without it a volume gives 250 MiB/s at most.
# Source: Amazon MSK Developer Guide, "Manage storage throughput for Standard brokers" (AWS's script leaves m7g.2xlarge out).
DEFAULT_VOLUME_MIBPS = 250.0
_PROVISIONABLE = frozenset(
    {
        *(f"kafka.m5.{size}xlarge" for size in (4, 8, 12, 16, 24)),
        *(f"kafka.m7g.{size}xlarge" for size in (2, 4, 8, 12, 16)),
    }
)
# Of t3.small the price alone is known (infracost 95ba4f4), no limit: it is for trying things out and is never chosen for a load.
UNMEASURED = {"kafka.t3.small": 0.0456}


class BrokerType(BaseModel):
    """One broker type.

    Args:
        name: as MSK calls it: ``kafka.m7g.large``, ``express.m7g.large``.
        kind: ``standard``, with EBS volumes, or ``express``, with storage that MSK manages.
        ebs_mibps: what its volumes take in MiB/s; standard only.
        network_mibps: what its network gives in MiB/s; standard only.
        ingress_mibps: what producers may send to one broker in MiB/s; express only.
        recommended_partitions: of one broker, replicas included.
        max_partitions: of one broker, replicas included: the hard limit.
        usd_per_h: of one broker.
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
        """Whether its volumes can have provisioned throughput."""
        return self.name in _PROVISIONABLE


@cache
def broker_types() -> tuple[BrokerType, ...]:
    """All types whose limits are known, standard first, each kind in the order of the data."""
    data: dict[str, dict[str, float]] = json.loads(_DATA.read_text(encoding="utf-8"))
    return tuple(_broker_type(name, row) for name, row in data.items())


def broker_type(name: str) -> BrokerType | None:
    """The type of this name; None where its limits are not known."""
    return next((found for found in broker_types() if found.name == name), None)


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
