"""The jobs whose pods are measured: their topics, and the loads that their pods are planned for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.pod_memory import profiles
from benchmarks.streaming.workload import BEGIN_MS, Input, Workload, closed, iso
from benchmarks.streaming.workloads import WORKLOADS

# Two executors of two slots.
SLOTS_OF_AN_EXECUTOR, EXECUTORS = 2, 2
# For a parallelism of 4: 4 slots process 2.5 times what one does with Flink's utilisation and catch-up (see `target_rate`).
_SLOTS_OF_LOAD = 2.4
_SESSIONS = 1_000_000
_CUSTOMERS = 100_000
# Of event time, for all records: less than the sessions' gap of 30 minutes, so that none ends.
_SESSIONS_MS = 20 * 60_000


@dataclass(frozen=True)
class MeasuredJob:
    """One job.

    Args:
        workload: its topics and its app.
        records: of its first topic.
        events_per_slot: what one of the four slots processes on a small machine, which its micro-batches are planned for.
        event_bytes: size of a record.
        keys: keys of its state.
        key_bytes: state of a key.
        after_records: records that fill the state, before which nothing is measured.
    """

    workload: Workload
    records: int
    events_per_slot: int
    event_bytes: int
    keys: int
    key_bytes: int
    after_records: int = 0

    def load(self) -> Mapping[str, Any]:
        """``spec.load`` of its pods' plan."""
        rates = {"eventsPerSecond": int(_SLOTS_OF_LOAD * self.events_per_slot), "eventsPerSlot": self.events_per_slot}
        return {**rates, "eventBytes": self.event_bytes, "state": {"keys": self.keys, "bytesPerKey": self.key_bytes}}


def _touched_sessions(records: int) -> Iterator[bytes]:
    """Each session once, then all of them again and again in another order: a stride that has no divisor in common with their number."""
    for number in range(records):
        token = number if number < _SESSIONS else number * 7_919 % _SESSIONS
        moment = BEGIN_MS + number * _SESSIONS_MS // records
        yield (
            f'{{"region_code":"region-{token % 40:02d}","unique_session_token":"token-{token:09d}","impressions":{1 + token % 50},'
            f'"at":"{iso(moment)}"}}'
        ).encode()


def _customers(records: int) -> Iterator[bytes]:
    """Orders of a hundred thousand customers: records of the benchmark's keyed function, with more keys."""
    made = (
        f'{{"customer":"customer-{number * 7_919 % _CUSTOMERS:06d}","at":{BEGIN_MS + number * 3_600_000 // records}}}'.encode()
        for number in range(records)
    )
    return closed(made, f'{{"customer":"flush","at":{BEGIN_MS + 3_600_000}}}'.encode())


def _unchecked(workload: Workload, **inputs: Input) -> Workload:
    """A workload whose rows are not compared: other benchmarks and tests do that."""
    return replace(workload, expected=lambda _: Counter(), inputs={**workload.inputs, **inputs})


def _with(workload: Workload, source: str, records: Any) -> Workload:
    return _unchecked(workload, **{source: replace(workload.inputs[source], records=records)})


JOBS = {
    "user_credit": MeasuredJob(_unchecked(WORKLOADS["user_credit"]), 1_000_000, 1_500, 120, 200_000, 300),
    "ad_impressions": MeasuredJob(_unchecked(WORKLOADS["ads"]), 8_000_000, 10_000, 240, 3_000, 200),
    "sessions": MeasuredJob(
        _with(WORKLOADS["sessions"], "impressions", _touched_sessions), 4_000_000, 3_000, 130, _SESSIONS, 200, after_records=_SESSIONS
    ),
    # Its state fills RocksDB's write buffers.
    "keyed_function": MeasuredJob(
        replace(_with(WORKLOADS["keyed_function"], "orders", _customers), app=profiles.__name__),
        2_000_000,
        2_500,
        60,
        _CUSTOMERS,
        profiles.PROFILE_BYTES + 100,
        after_records=_CUSTOMERS,
    ),
}
