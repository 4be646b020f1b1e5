"""One instance type of EC2, as its data sheet has it."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

# Source: karpenter-provider-aws v1.14.1, the scheme by which it reads a category and a generation out of a name.
_NAME = re.compile(r"^([a-z]+)(-[0-9]+tb)?([0-9]+).*\.")

_Amount = Annotated[int, Field(ge=0)]
_Rate = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class InstanceType(BaseModel):
    """One instance type in one region.

    Args:
        name: ``m7g.xlarge``.
        vcpu: virtual CPUs.
        memory_mib: memory of the data sheet, before what the hypervisor takes.
        arch: as Kubernetes names it.
        hypervisor: ``nitro``, ``xen``, or empty for bare metal.
        bare_metal: no hypervisor at all.
        burstable: CPU by credits, the T families.
        current_generation: AWS's own word for it.
        gpus: GPUs.
        accelerators: other accelerators: Inferentia, Trainium, Qualcomm, Habana.
        local_nvme_gib: NVMe disks of the machine, in all.
        enis: network interfaces of the default network card.
        ipv4_per_eni: IPv4 addresses of an interface, its own included.
        network_baseline_gbps: Gbit/s that it may always use.
        network_peak_gbps: Gbit/s of a burst.
        ebs_baseline_mbps: Mbit/s to EBS that it may always use; None: unknown.
        spot: whether it is sold as spot.
        on_demand_usd_per_h: None: unknown.
        zones: where it is offered; none: unknown, and then it can't be launched.
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
        """What stands before the dot: ``m7g``."""
        return self.name.partition(".")[0]

    @cached_property
    def size(self) -> str:
        """What stands after the dot: ``xlarge``."""
        return self.name.partition(".")[2]

    @cached_property
    def category(self) -> str | None:
        """The leading letters of the family, ``m``; None for a name out of the scheme."""
        match = _NAME.match(self.name)
        return match.group(1) if match else None

    @cached_property
    def generation(self) -> int | None:
        """The number after the category, 7; None for a name out of the scheme."""
        match = _NAME.match(self.name)
        return int(match.group(3)) if match else None
