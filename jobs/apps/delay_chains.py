"""delay_chains: the longest delays of each plane: each chain of delayed departures that is longer than all earlier ones, when it ends.

A chain ends with the plane's next departure on time, or after three days without a departure. The last row of a plane is its longest
chain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import Row

from penstock import Job, Key, KeyedFunction, Out, Tag, process, value
from penstock.sizing.units import duration_ms

OPERATORS = ("read-departures", "chains-by-plane", "write-chains")

DEPARTURES = "id BIGINT NOT NULL, tailnum STRING, dep_delay BIGINT, told_at STRING"
_CHAIN = "departures bigint, minutes bigint, first_at string, last_at string, last_ms bigint"


@dataclass(frozen=True)
class Chains(KeyedFunction):
    """The current chain of a plane, and the length of its longest one.

    Args:
        delayed_minutes: delay from which a departure counts as delayed.
        silence_ms: time without a departure after which a chain ends, in milliseconds.
    """

    delayed_minutes: int
    silence_ms: int

    def on_row(self, row: Row, key: Key) -> Out:
        """A departure: continues or ends the chain."""
        chain = key.value("chain").get()
        if chain:
            key.cancel_timer(chain["last_ms"] + self.silence_ms)
        if row.dep_delay < self.delayed_minutes:
            return self._end(chain, key, "on time")
        assert key.time_ms is not None
        chain = chain or {"departures": 0, "minutes": 0, "first_at": row.told_at}
        longer = {"departures": chain["departures"] + 1, "minutes": chain["minutes"] + row.dep_delay}
        key.value("chain").set(chain | longer | {"last_at": row.told_at, "last_ms": key.time_ms})
        key.set_timer(key.time_ms + self.silence_ms)
        return None

    def on_timer(self, time_ms: int, key: Key) -> Out:
        """The plane has not left for `silence_ms`: ends the chain."""
        return self._end(key.value("chain").get(), key, "silence")

    def _end(self, chain: dict[str, Any] | None, key: Key, ended: str) -> Out:
        key.value("chain").clear()
        if not chain or chain["departures"] <= (key.value("longest").get() or 1):
            return None
        key.value("longest").set(chain["departures"])
        row = {name: chain[name] for name in ("departures", "minutes", "first_at", "last_at")}
        return [row | {"ended": ended}]


def build(job: Job) -> None:
    """Declares the job."""
    departures = job.source("departures", DEPARTURES).filter("dep_delay is not null and tailnum is not null")
    chains = process(
        departures,
        ["tailnum"],
        Chains(int(job.parameters["delayed_minutes"]), duration_ms(job.parameters["silence"])),
        state={"chain": value(_CHAIN), "longest": value("bigint")},
        output="tailnum string, departures bigint, minutes bigint, first_at string, last_at string, ended string",
        order="time",
        tie=["id"],
    )
    job.write(chains, "out")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
