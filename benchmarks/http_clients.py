"""CPU time of a call to an HTTP service by several clients, ten calls at a time:
``python -m benchmarks.http_clients [--rounds N] [--calls N]``.

The service is the one of user_credit, in a process of its own. Each client takes its turn in this process.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp
import httpx
import urllib3

from penstock.scripts.local.servers.http_endpoint import HttpEndpoint

_AT_A_TIME = 10
_PAIR = {"token": "token-1", "user_id": "user-1", "amount": 2792.03, "credit_limit": 3364.29}


async def _calls(call: Callable[[int], Awaitable[object]], calls: int) -> None:
    """As many calls, ten at a time."""

    async def some(first: int) -> None:
        for number in range(first, calls, _AT_A_TIME):
            await call(number)

    await asyncio.gather(*(some(first) for first in range(_AT_A_TIME)))


async def _by_httpx(url: str, calls: int) -> None:
    async with httpx.AsyncClient(base_url=url, limits=httpx.Limits(max_connections=_AT_A_TIME)) as client:

        async def call(number: int) -> None:
            (await client.post("/limits", json=_PAIR, headers={"Idempotency-Key": str(number)})).json()

        await _calls(call, calls)


async def _by_aiohttp(url: str, calls: int) -> None:
    async with aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(limit=_AT_A_TIME)) as session:

        async def call(number: int) -> None:
            async with session.post("/limits", json=_PAIR, headers={"Idempotency-Key": str(number)}) as answer:
                await answer.json()

        await _calls(call, calls)


def _by_urllib3(url: str, calls: int) -> None:
    with urllib3.PoolManager(maxsize=_AT_A_TIME) as pool, ThreadPoolExecutor(_AT_A_TIME) as threads:

        def call(number: int) -> None:
            pool.request("POST", f"{url}/limits", json=_PAIR, headers={"Idempotency-Key": str(number)}).json()

        list(threads.map(call, range(calls)))


CLIENTS: dict[str, Callable[[str, int], None]] = {
    "httpx, AsyncClient": lambda url, calls: asyncio.run(_by_httpx(url, calls)),
    "aiohttp, ClientSession": lambda url, calls: asyncio.run(_by_aiohttp(url, calls)),
    "urllib3, in threads": _by_urllib3,
}


def main() -> None:
    """Prints the median of each, with the minimum and the maximum."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=5_000)
    options = parser.parse_args()
    measured: dict[str, list[float]] = {name: [] for name in CLIENTS}
    with TemporaryDirectory() as folder, HttpEndpoint(Path(folder), "penstock.jobs.local.user_credit:credit_service") as service:
        # The first round imports and connects.
        for number in range(options.rounds + 1):
            for name, client in CLIENTS.items():
                started = time.process_time()
                client(service.url, options.calls)
                if number:
                    measured[name].append((time.process_time() - started) / options.calls * 1e6)
    for name, rounds in measured.items():
        print(f"{name:<24} {statistics.median(rounds):6.0f} us of CPU a call ({min(rounds):.0f} to {max(rounds):.0f})")


if __name__ == "__main__":
    main()
