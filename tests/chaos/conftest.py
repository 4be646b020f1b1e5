from __future__ import annotations

from tests.emulated.conftest import aws
from tests.kube.fixtures import tell

__all__ = ["aws", "tell"]
