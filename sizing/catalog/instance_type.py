"""One EC2 instance type, as in its data sheet."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

# Source: karpenter-provider-aws v1.14.1, the pattern that extracts category and generation from a name.
_NAME = re.compile(r"^([a-z]+)(-[0-9]+tb)?([0-9]+).*\.")

_Amount = Annotated[int, Field(ge=0)]
_Rate = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class InstanceType(BaseModel):
    """One instance type in one region.

    Args:
        name: for example ``m7g.xlarge``.
        vcpu: virtual CPUs.
        memory_mib: memory in the data sheet, before the hypervisor's overhead.
        arch: architecture, by its Kubernetes name.
        hypervisor: ``nitro``, ``xen``, or empty for bare metal.
        bare_metal: whether it has no hypervisor.
        burstable: whether CPU is limited by credits (the T families).
        current_generation: whether AWS lists it as current generation.
        gpus: number of GPUs.
        accelerators: number of other accelerators: Inferentia, Trainium, Qualcomm, Habana.
        local_nvme_gib: total size of the instance store NVMe disks.
        enis: network interfaces of the default network card.
        ipv4_per_eni: IPv4 addresses per interface, including its primary address.
        network_baseline_gbps: baseline bandwidth in Gbit/s.
        network_peak_gbps: burst bandwidth in Gbit/s.
        ebs_baseline_mbps: baseline EBS bandwidth in Mbit/s; None: unknown.
        spot: whether it is available as spot.
        on_demand_usd_per_h: on-demand price per hour; None: unknown.
        zones: zones that offer it; empty: unknown, and it cannot be launched.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    vcpu: Annotated[int, Field(ge=1)]
    memory_mib: Annotated[int, Field(ge=1)]
    arch: Literal["amd64", "arm64"]
    hypervisor: str
    bare_metal: bool
    burstable: bool
    current_generation: bool
    gpus: _Amount
    accelerators: _Amount
    local_nvme_gib: _Amount
    enis: _Amount
    ipv4_per_eni: _Amount
    network_baseline_gbps: _Rate
    network_peak_gbps: _Rate
    ebs_baseline_mbps: _Amount | None
    spot: bool
    on_demand_usd_per_h: _Rate | None
    zones: tuple[str, ...]

    @cached_property
    def family(self) -> str:
        """The part of the name before the dot: ``m7g``."""
        return self.name.partition(".")[0]

    @cached_property
    def size(self) -> str:
        """The part of the name after the dot: ``xlarge``."""
        return self.name.partition(".")[2]

    @cached_property
    def category(self) -> str | None:
        """The leading letters of the family, ``m``; None if the name does not match the pattern."""
        match = _NAME.match(self.name)
        return match.group(1) if match else None

    @cached_property
    def generation(self) -> int | None:
        """The number after the category, 7; None if the name does not match the pattern."""
        match = _NAME.match(self.name)
        return int(match.group(3)) if match else None
