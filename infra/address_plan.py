"""Division of a VPC's addresses into subnets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network
from typing import NamedTuple

# Eight equal shares: one per zone for the private subnets of up to six zones, one free, and the last for all public subnets. Appending a
# zone does not move existing subnets.
SHARES = 8
MAX_ZONES = 6
# Source: Amazon VPC User Guide, "VPC CIDR blocks" and "Subnet CIDR blocks".
MAX_PREFIX = 28
MIN_PREFIX = 16
# The VPC CNI plugin assigns each pod an address of the subnet and keeps spare addresses on each node: with its defaults, 251 addresses
# suffice
# for four nodes of 16 vCPUs. In smaller subnets, pods run out of addresses before they run out of nodes.
MAX_PRIVATE_PREFIX = 24
# The longest VPC prefix whose shares are private subnets of that size.
MAX_VPC_PREFIX = 21
# Source: RFC 1918; RFC 6598 for 100.64.0.0/10.
PRIVATE_RANGES = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")))


class AddressPlan(NamedTuple):
    """The subnets of a VPC, one per zone.

    Args:
        private: CIDRs.
        public: CIDRs.
    """

    private: tuple[str, ...]
    public: tuple[str, ...]


def address_plan(cidr: str, zones: int) -> AddressPlan:
    """The default subnets of a VPC.

    Args:
        cidr: of the VPC, a /16 to a /21.
        zones: number of zones, 1 to 6.

    Returns:
        Private subnets of an eighth of the VPC each, public ones of a sixty-fourth.
    """
    shares = list(IPv4Network(cidr).subnets(prefixlen_diff=3))
    public = shares[-1].subnets(prefixlen_diff=3)
    return AddressPlan(tuple(map(str, shares[:zones])), tuple(str(subnet) for subnet, _ in zip(public, range(zones), strict=False)))


def network(cidr: str) -> IPv4Network:
    """Parses a CIDR.

    Args:
        cidr: such as ``10.0.0.0/16``.

    Raises:
        ValueError: not a CIDR, or bits are set beyond the prefix; worded for the user.
    """
    try:
        return IPv4Network(cidr)
    except ValueError:
        pass
    try:
        meant = IPv4Network(cidr, strict=False)
    except ValueError:
        raise ValueError(f"an IPv4 CIDR block such as 10.0.0.0/16, not {cidr}") from None
    raise ValueError(f"the network address of the block: {meant}, not {cidr}")


def subnet_faults(subnets: Sequence[str], *, within: str | None, max_prefix: int, taken: Iterable[str] = ()) -> list[str]:
    """Describes the faults of configured subnets.

    Args:
        subnets: CIDRs.
        within: the VPC's CIDR; None if unknown because it is itself invalid.
        max_prefix: longest prefix that is large enough.
        taken: CIDRs of other subnets of the VPC.
    """
    faults: list[str] = []
    seen = [IPv4Network(cidr) for cidr in taken]
    for cidr in subnets:
        try:
            subnet = network(cidr)
        except ValueError as error:
            faults.append(str(error))
            continue
        if not MIN_PREFIX <= subnet.prefixlen <= max_prefix:
            faults.append(f"a prefix length from /{MIN_PREFIX} to /{max_prefix}; {cidr} has {subnet.num_addresses} addresses")
        if within is not None and not subnet.subnet_of(IPv4Network(within)):
            faults.append(f"within the VPC's CIDR block {within}; {cidr} is outside")
        faults += [f"non-overlapping CIDR blocks; {cidr} overlaps {other}" for other in seen if subnet.overlaps(other)]
        seen.append(subnet)
    return faults
