"""The client of the credit service against its local implementation."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.jobs.apps.user_credit import CreditService
from penstock.jobs.blocks.calls import CallRefused
from penstock.jobs.local.user_credit import BUSY_IN
from penstock.scripts.local.servers.http_endpoint import HttpEndpoint


def _pair(amount: float) -> dict[str, Any]:
    return {"token": "t", "user_id": "u", "amount": amount, "credit_limit": 9.0, "a_timestamp": "", "b_timestamp": "", "records": ""}


async def _asked(url: str, *calls: tuple[float, str]) -> list[Mapping[str, Any] | Exception]:
    service, asked = CreditService(url), list[Mapping[str, Any] | Exception]()
    async with service:
        for amount, key in calls:
            try:
                asked.append(await service(_pair(amount), key))
            except (CallRefused, ConnectionError) as error:
                asked.append(error)
    return asked


def test_an_answer_a_rejection_and_a_busy_service_are_distinguished(tmp_path: Path) -> None:
    busy = next(key for key in map(str, range(10_000)) if zlib.crc32(key.encode()) % BUSY_IN == 1)
    with HttpEndpoint(tmp_path / "service", "penstock.jobs.local.user_credit:credit_service") as endpoint:
        answered, refused, failed, again = asyncio.run(_asked(endpoint.url, (1.5, "a"), (90.1, "b"), (1.5, busy), (1.5, busy)))
        requests = endpoint.requests()
    assert answered == again == {"new_limit": 8.85}
    assert isinstance(refused, CallRefused) and str(refused) == "the limit can't bear it"
    assert isinstance(failed, ConnectionError) and str(failed) == "the credit service has answered 503"
    made = [(request.headers["idempotency-key"], request.status) for request in requests]
    assert made == [("a", 200), ("b", 422), (busy, 503), (busy, 200)]
    assert requests[0].json() == {"token": "t", "user_id": "u", "amount": 1.5, "credit_limit": 9.0}
