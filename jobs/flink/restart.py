"""Flink's failure-rate restart strategy, which is what a spec's ``restart`` is."""

from __future__ import annotations

from typing import Any

from penstock.jobs.flink.reading import Reading
from penstock.jobs.flink.spec_text import duration_text
from penstock.sizing.flink.values import duration_ms, whole_number

_KINDS = ("restart-strategy.type", "restart-strategy")
_FAILURE_RATE = ("failure-rate", "failurerate")
MOST = "restart-strategy.failure-rate.max-failures-per-interval"
INTERVAL = "restart-strategy.failure-rate.failure-rate-interval"
# Source: Flink's documentation, "Task Failure Recovery": the defaults of the two.
_DEFAULT_MOST, _DEFAULT_INTERVAL_MS = 1, 60_000
# As many as a spec takes.
_GREATEST = 50


def restart(doc: Reading) -> dict[str, Any]:
    """The spec's ``restart``; empty for any other strategy, which has no limit within a time."""
    path = next((doc.places[key] for key in _KINDS if doc.settings.get(key) in _FAILURE_RATE), None)
    if path is None:
        return {}
    most = doc.read(MOST, whole_number, _DEFAULT_MOST)
    within_ms = doc.read(INTERVAL, duration_ms, _DEFAULT_INTERVAL_MS)
    words = "as Flink's failure rate; failures of brokers, S3 and databases do not count here"
    doc.note("restart", path, words if most <= _GREATEST else f"{words}; at most {_GREATEST} failures")
    return {"restart": {"failures": min(most, _GREATEST), "within": duration_text(within_ms)}}
