"""MSK, instead of moto's, whose clusters stay in the state CREATING forever, and which has no configurations and no bootstrap brokers."""

from __future__ import annotations

from moto.kafka.models import kafka_backends

from penstock.scripts.emulation.checked_service import CheckedService
from penstock.scripts.emulation.msk import changes, clusters, configurations, sharing, topics
from penstock.scripts.emulation.msk.state import Msk

SERVICE = CheckedService(
    "kafka",
    hosts=r"https?://kafka\.(.+)\.amazonaws\.com",
    operations={**clusters.OPERATIONS, **changes.OPERATIONS, **configurations.OPERATIONS, **sharing.OPERATIONS, **topics.OPERATIONS},
    state=Msk,
    malformed="BadRequestException",
)


def add() -> None:
    """Serve MSK in this process."""
    SERVICE.take_over(kafka_backends)
