"""Availability zones of an environment."""

from __future__ import annotations

from penstock.scripts.provisioning.aws_access import AwsAccess, translated
from penstock.scripts.provisioning.errors import UnknownZone


def check(aws: AwsAccess) -> tuple[str, ...]:
    """Check that AWS offers all zones of the environment to this account.

    Args:
        aws: AWS of the environment.

    Returns:
        Their names; empty for an environment that has no network of its own.

    Raises:
        UnknownZone: DEP-009.
        PenstockError: TOOL-030, DEP-001, RUN-020 or RUN-021.
    """
    environment = aws.environment
    network = environment.spec.network
    if network is None:
        return ()
    with translated(f"EC2 in {environment.spec.region}"):
        answers = aws.client("ec2").describe_availability_zones()["AvailabilityZones"]
    available = sorted(answer["ZoneName"] for answer in answers if answer["State"] == "available")
    strange = [zone for zone in network.zones if zone not in available]
    if strange:
        need = f"availability zones of {environment.spec.region} for this account: {', '.join(available)}"
        fault = UnknownZone(given=", ".join(strange), need=need, fix="use other zones")
        raise environment.locate(fault, "spec", "network", "zones")
    return tuple(network.zones)
