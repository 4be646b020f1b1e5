"""Address ranges that may reach something: ranges of an owner, not most of the Internet."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network

# The widest range that a single owner has. A wider one, such as 0.0.0.0/1, covers most of the Internet.
WIDEST_PREFIX = {4: 8, 6: 16}


def refuse_most_of_the_internet(network: IPv4Network | IPv6Network, what: str) -> None:
    """Rejects a range that no single owner has.

    Args:
        network: the range.
        what: is reached, such as ``the API server``.

    Raises:
        ValueError: it is wider than any owner's; worded for the user.
    """
    widest = WIDEST_PREFIX[network.version]
    if network.prefixlen < widest:
        raise ValueError(f"known CIDR blocks, no larger than /{widest}: {network} opens {what} to most of the Internet")
