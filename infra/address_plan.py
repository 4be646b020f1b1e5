"""How a VPC's addresses are shared among its subnets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network
from typing import NamedTuple

# Eight equal shares: one for the private subnet of each of up to six zones, one that stays free, and the last for all public subnets.
# A zone that is added at the end moves no subnet that is there.
SHARES = 8
MAX_ZONES = 6
# Source: Amazon VPC User Guide, "VPC CIDR blocks" and "Subnet CIDR blocks".
MAX_PREFIX = 28
MIN_PREFIX = 16
# The VPC CNI plugin gives every pod an address of the subnet and keeps some spare on each node: 251 addresses are four nodes of 16 vCPUs
# with their defaults, below which pods wait for addresses sooner than for nodes.
MAX_PRIVATE_PREFIX = 24
# The largest prefix of a VPC whose shares are private subnets of that size.
MAX_VPC_PREFIX = 21
# Source: RFC 1918; RFC 6598 for 100.64.0.0/10.
PRIVATE_RANGES = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")))


class AddressPlan(NamedTuple):
    """The subnets of a VPC, one a zone each.

    Args:
        private: CIDRs.
        public: CIDRs.
    """

    private: tuple[str, ...]
    public: tuple[str, ...]


def address_plan(cidr: str, zones: int) -> AddressPlan:
    """The subnets that a VPC gets where none are given.

    Args:
        cidr: of the VPC, a /16 to a /21.
        zones: how many, 1 to 6.

    Returns:
        Private subnets of an eighth of the VPC each, public ones of a sixty-fourth.
    """
    shares = list(IPv4Network(cidr).subnets(prefixlen_diff=3))
    public = shares[-1].subnets(prefixlen_diff=3)
    return AddressPlan(tuple(map(str, shares[:zones])), tuple(str(subnet) for subnet, _ in zip(public, range(zones), strict=False)))


def network(cidr: str) -> IPv4Network:
    """A CIDR.

    Args:
        cidr: as ``10.0.0.0/16``.

    Raises:
        ValueError: it is none, or has bits beyond its prefix; in the caller's terms.
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
    """What is wrong with subnets that were given by hand, in words.

    Args:
        subnets: CIDRs.
        within: the VPC's CIDR; None: not known, for it is itself wrong.
        max_prefix: of the smallest subnet that will do.
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
