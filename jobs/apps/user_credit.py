"""user_credit: matching events of services A and B within a minute of each other, and the remaining credit.

Topics A and B are joined by token with -60 s..+60 s; for each pair the credit service is called asynchronously for the new limit. The
pairs go to S3 by date, records that do not parse to quarantine, late rows to a separate topic, and pairs whose call failed to the
alerts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock import CallRefused, Job, Side, Stream, Tag, call, interval_join

if TYPE_CHECKING:
    import aiohttp

OPERATORS = ("read-a", "read-b", "join-by-token", "update-credit", "write-user-data")

CAPACITY = 10
_UNPROCESSABLE = 422
# Position of a record: the call's idempotency key is built from the positions of both records.
_PLACE = "concat_ws('-', record.topic, record.partition, record.offset)"


class CreditService:
    """Client of the credit service: one per task, called once per pair.

    Args:
        url: URL of the service.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    async def __aenter__(self) -> None:
        import aiohttp

        # The call block ends a call at its timeout.
        no_limit = aiohttp.ClientTimeout(total=None)
        connections = aiohttp.TCPConnector(limit=CAPACITY)
        self._session: aiohttp.ClientSession = aiohttp.ClientSession(self._url, connector=connections, timeout=no_limit)

    async def __aexit__(self, *error: object) -> None:
        await self._session.close()

    async def __call__(self, row: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        """The new limit of a pair.

        Raises:
            CallRefused: the service rejects the call permanently.
            ConnectionError: a retry may succeed.
        """
        asked = {name: row[name] for name in ("token", "user_id", "amount", "credit_limit")}
        async with self._session.post("/limits", json=asked, headers={"Idempotency-Key": key}) as answer:
            if answer.status == _UNPROCESSABLE:
                raise CallRefused((await answer.json())["reason"])
            if not answer.ok:
                raise ConnectionError(f"the credit service has answered {answer.status}")
            return {"new_limit": (await answer.json())["new_limit"]}


def build(job: Job) -> None:
    """Declares the job."""
    a = job.source("a", "token STRING NOT NULL, event_timestamp STRING, user_id STRING, amount DOUBLE", record="record")
    b = job.source("b", "token STRING NOT NULL, event_timestamp STRING, credit_limit DOUBLE", record="record")
    pairs = interval_join(Side("a", _placed(a), "token"), Side("b", _placed(b), "token"), lower="-60s", upper="60s")
    user_data = pairs.select(
        token="a.token",
        user_id="a.user_id",
        amount="a.amount",
        credit_limit="b.credit_limit",
        a_timestamp="a.event_timestamp",
        b_timestamp="b.event_timestamp",
        records="concat_ws('/', a.place, b.place)",
    )
    updated = call(
        user_data,
        CreditService(job.connections["credit-service"]),
        name="credit-update",
        key="records",
        result="new_limit DOUBLE NOT NULL",
        capacity=CAPACITY,
        timeout="3s",
        attempts=4,
        backoff="100ms",
        ordered=False,
    )
    fields = ("token", "user_id", "amount", "credit_limit", "new_limit", "a_timestamp", "b_timestamp")
    job.write(updated.select(**{name: name for name in fields}), "out")
    job.side_output("errors", Tag.QUARANTINED)
    job.side_output("late", Tag.LATE)
    job.side_output("alerts", Tag.FAILED)


def _placed(stream: Stream) -> Stream:
    """The stream with the positions of its records instead of the records, which the join would have to keep."""
    fields = {name: name for name in stream.fields if name != "record"}
    return stream.select(**fields, place=_PLACE)
