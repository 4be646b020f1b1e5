from __future__ import annotations

from tests.chaos.fixtures import chaos_kills, chaos_seed, kafka, ledger, new_job, s3
from tests.emulated.conftest import aws
from tests.kube.fixtures import tell

__all__ = ["aws", "chaos_kills", "chaos_seed", "kafka", "ledger", "new_job", "s3", "tell"]
