"""An HTTP endpoint as a sink: the rows of a micro-batch as JSON arrays by POST, for alerts.

Guarantee: at least once. A micro-batch that is run again posts the same arrays again, each under the same ``Idempotency-Key``, made of its
place and its content: an endpoint that keeps the keys it has seen takes each array once. Any answer of 2xx is taken for yes; 408, 425, 429,
5xx and no answer are tried again with growing pauses (or what ``Retry-After`` asks for, up to a minute); all else fails the job at once,
with JOB-056, as does the last attempt.

Cost: the rows go through the driver, and the micro-batch waits for the endpoint. It is for what people read, not for data.
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

from penstock.jobs.errors import WebhookFailed
from penstock.jobs.sinks.sink import Batch, SinkContext
from penstock.jobs.sinks.text_rows import fields_of
from penstock.jobs.spec import WebhookSink
from penstock.jobs.spec.connection_addresses import redacted, the_url

if TYPE_CHECKING:
    import httpx

# RFC 9110 and RFC 6585 say of these that the same request may be taken later.
_LATER = frozenset({408, 425, 429})
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 60.0


@dataclass(frozen=True)
class Webhook:
    """An endpoint to post to.

    Args:
        name: of the sink in the spec.
        sink: as the spec has it.
        url: of the endpoint, credentials included.
        identity: of the checkpoint, so that two jobs never have the same keys.
    """

    name: str
    sink: WebhookSink
    url: str = field(repr=False)
    identity: str = ""

    @classmethod
    def of(cls, name: str, sink: WebhookSink, context: SinkContext) -> Webhook:
        """The sink of a spec. Raises JOB-050 and JOB-051."""
        return cls(name, sink, the_url(context.connections, sink.connection, "http", f"spec.sinks.{name}"), context.identity)

    def check(self) -> None:
        """Nothing is asked: there is no request that every endpoint takes without doing something."""

    def idle(self, now_ms: int) -> None:
        """Nothing is held back."""

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Posts the rows of a micro-batch.

        Args:
            rows: data rows; those of the columns ``key`` and ``value`` alone are JSON already.
            batch: the micro-batch.

        Raises:
            WebhookFailed: JOB-056.
        """
        if not batch.rows:
            return
        json = F.to_json(F.struct(*fields_of(rows)), {"ignoreNullFields": "false"})
        line = F.col("value") if rows.columns == ["key", "value"] else json
        # In an order of their own, so that a replay cuts the same arrays.
        lines = (str(row["line"]) for row in rows.select(line.alias("line")).orderBy("line").toLocalIterator())
        with self._client() as client:
            for place, array in enumerate(self._arrays(lines)):
                # Two arrays may be alike, and both are meant.
                whole = f"{self.identity}/{self.name}/{batch.number}/{place}/".encode() + array
                self._post(client, array, batch, hashlib.sha256(whole).hexdigest()[:32])

    def _arrays(self, lines: Iterator[str]) -> Iterator[bytes]:
        while some := list(islice(lines, self.sink.rows)):
            yield f"[{','.join(some)}]".encode()

    def _client(self) -> httpx.Client:
        import httpx

        parts = urlsplit(self.url)
        # Apart from the URL, which httpx would write into its log.
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
    """The seconds that an answer asks to wait; a date there is not looked at."""
    asked = answer.headers.get("Retry-After", "")
    return min(float(asked), _LONGEST_PAUSE_S) if asked.isdigit() else pause_s
