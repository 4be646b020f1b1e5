from __future__ import annotations

from pathlib import Path

import pytest

from penstock.sizing.errors import PenstockError
from tests.infra.environments import read


@pytest.mark.parametrize(
    ("cidr", "need"),
    [
        ("0.0.0.0/0", "0.0.0.0/0 opens the brokers to most of the Internet"),
        ("128.0.0.0/1", "no larger than /8"),
        ("10.0.0.1/8", "the network address of the block: 10.0.0.0/8"),
        ("office", "an IPv4 CIDR block such as 10.0.0.0/16, not office"),
    ],
)
def test_a_range_that_no_owner_has_does_not_reach_the_brokers(tmp_path: Path, cidr: str, need: str) -> None:
    with pytest.raises(PenstockError) as raised:
        read(tmp_path, lambda spec: spec["kafka"].update(clientCidrs=["10.8.0.0/16", cidr]))
    (fault,) = raised.value.errors
    assert fault.path == "spec.kafka.clientCidrs[1]" and need in fault.need
    assert fault.at is not None and fault.at.line
