"""An HTTP endpoint as a sink: POSTs the rows of a micro-batch as JSON arrays, for alerts.

Guarantee: at least once. A micro-batch that is run again posts the same arrays again, each with the same ``Idempotency-Key``, derived
from its position and content: an endpoint that remembers the keys accepts each array once. A driver that was frozen while another one took
over posts those of one micro-batch again, with the same keys.

Any 2xx response is a success; 408, 425, 429, 5xx and no response are retried with growing pauses (or those of ``Retry-After``, up to a
minute); any other response, and the last failed attempt, fails the job with JOB-056.

Cost: the rows go through the driver, and the micro-batch waits for the endpoint. It is meant for notifications that people read, not for
bulk data.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.jobs.sinks.errors import WebhookFailed
from penstock.jobs.sinks.sink import Batch, SinkContext
from penstock.jobs.sinks.text_rows import fields_of
from penstock.jobs.spec import WebhookSink
from penstock.jobs.spec.connection_addresses import redacted, the_url

if TYPE_CHECKING:
    import httpx

# Statuses after which the same request may succeed later (RFC 9110, RFC 6585).
_LATER = frozenset({408, 425, 429})
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 60.0


@dataclass(frozen=True)
class Webhook:
    """Sink that posts to an endpoint.

    Args:
        name: name of the sink in the spec.
        sink: sink of the spec.
        url: URL of the endpoint, credentials included.
        identity: unique id of the checkpoint, so that two jobs never use the same keys.
    """

    name: str
    sink: WebhookSink
    url: str = field(repr=False)
    identity: str = ""

    @classmethod
    def of(cls, name: str, sink: WebhookSink, context: SinkContext) -> Webhook:
        """Builds the sink from its spec. Raises JOB-050 and JOB-051."""
        return cls(name, sink, the_url(context.connections, sink.connection, "http", f"spec.sinks.{name}"), context.identity)

    def check(self) -> None:
        """Does nothing: no request is free of side effects on every endpoint."""

    def idle(self, now_ms: int) -> None:
        """Does nothing: no rows are held back."""

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Posts the rows of a micro-batch.

        Args:
            rows: data rows; those with only the columns ``key`` and ``value`` are JSON already.
            batch: the micro-batch.

        Raises:
            WebhookFailed: JOB-056.
        """
        if not batch.rows:
            return
        json = F.to_json(F.struct(*fields_of(rows)), {"ignoreNullFields": "false"})
        line = F.col("value") if rows.columns == ["key", "value"] else json
        # Sorted, so that a replay posts the same arrays.
        lines = (str(row["line"]) for row in rows.select(line.alias("line")).orderBy("line").toLocalIterator())
        with self._client() as client:
            for place, array in enumerate(self._arrays(lines)):
                # Two arrays with the same content are both posted.
                whole = f"{self.identity}/{self.name}/{batch.number}/{place}/".encode() + array
                self._post(client, array, batch, hashlib.sha256(whole).hexdigest()[:32])

    def _arrays(self, lines: Iterator[str]) -> Iterator[bytes]:
        while some := list(islice(lines, self.sink.rows)):
            yield f"[{','.join(some)}]".encode()

    def _client(self) -> httpx.Client:
        import httpx

        parts = urlsplit(self.url)
        # Without the URL, which httpx would log.
        auth = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
        return httpx.Client(auth=auth, timeout=self.sink.timeout / 1000, headers={"User-Agent": "penstock"})

    def _post(self, client: httpx.Client, array: bytes, batch: Batch, key: str) -> None:
        import httpx

        parts = urlsplit(self.url)
        url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        said = ""
        for attempt in range(1, self.sink.attempts + 1):
            pause_s = min(_FIRST_PAUSE_S * 2 ** (attempt - 1), _LONGEST_PAUSE_S)
            try:
                answer = client.post(url, content=array, headers=headers)
            except httpx.TransportError as error:
                said = f"{type(error).__name__}: {error}"
            else:
                if answer.is_success:
                    return
                said = f"{answer.status_code} {answer.reason_phrase}"
                if answer.status_code not in _LATER and answer.status_code < 500:
                    break
                pause_s = _asked_for(answer, pause_s)
            if attempt < self.sink.attempts:
                time.sleep(pause_s)
        given = f"{said} from {redacted(self.url)} after {attempt} of {self.sink.attempts} attempts"
        fix = "check the endpoint; the job resumes with this micro-batch"
        raise WebhookFailed(path=f"sink {self.name}, batch {batch.number}", given=given, need="a 2xx response", fix=fix)


def _asked_for(answer: httpx.Response, pause_s: float) -> float:
    """The seconds that a response asks to wait; a date is ignored."""
    asked = answer.headers.get("Retry-After", "")
    return min(float(asked), _LONGEST_PAUSE_S) if asked.isdigit() else pause_s
