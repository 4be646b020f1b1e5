"""What a round of a contestant has given: its figures, its micro-batches, or why it has none."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.sizing.errors import PenstockError

# The phase that Spark reports for all of a micro-batch.
TOTAL = "triggerExecution"
_REASON_LENGTH = 300


@dataclass(frozen=True)
class MicroBatch:
    """One committed micro-batch.

    Args:
        rows: records that it has read.
        phases_ms: Spark's phase -> milliseconds; a driver that reports no phases has only `TOTAL`.
        s3_requests: requests to S3 since the commit before.
    """

    rows: int
    phases_ms: Mapping[str, float]
    s3_requests: int


@dataclass(frozen=True)
class MicroBatches:
    """The medians of a round's micro-batches that have read records.

    Args:
        count: how many there are.
        rows: records of one.
        phases_ms: Spark's phase -> milliseconds.
        s3_requests: requests to S3 from one commit to the next.
    """

    count: int
    rows: float
    phases_ms: Mapping[str, float]
    s3_requests: float


@dataclass(frozen=True)
class Result:
    """One round of a contestant.

    Args:
        events: records that it has read.
        total_s: seconds from its start until all rows were there.
        total_cpu_s: CPU seconds of its processes in that time.
        warm_events_per_s: records a second after the first third of the rows; 0 if all came at once.
        warm_events_per_cpu_s: the same for each CPU second.
        peak_mib: memory of its processes.
        wrong: why it does not count, such as wrong rows; empty if it does.
        micro_batches: of Spark; None for other engines.
    """

    events: int
    total_s: float
    total_cpu_s: float
    warm_events_per_s: float
    warm_events_per_cpu_s: float
    peak_mib: float
    wrong: tuple[str, ...] = ()
    micro_batches: MicroBatches | None = None

    @property
    def events_per_cpu_s(self) -> float:
        """Of all of the round, start included."""
        return self.events / self.total_cpu_s if self.total_cpu_s else 0.0


def failed(events: int, error: BaseException) -> Result:
    """The result of a round whose contestant has failed: a reason, and no figures."""
    return Result(events, 0.0, 0.0, 0.0, 0.0, 0.0, (f"failed: {reason(error)}",))


def reason(error: BaseException) -> str:
    """Why a process has failed, in a line: the innermost cause of a Java trace, otherwise the end of the log."""
    lines = [line.strip() for line in _text(error).splitlines() if line.strip()] or [type(error).__name__]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    return (causes or lines)[-1].removeprefix("Caused by: ")[:_REASON_LENGTH]


def _text(error: BaseException) -> str:
    if not isinstance(error, PenstockError):
        return str(error)
    first = error.errors[0]
    # A driver that has died is given by the end of its log.
    return first.given if "\n" in first.given else str(first)


def medians(micro_batches: Sequence[MicroBatch]) -> MicroBatches | None:
    """The medians of the micro-batches with records; None if there are none."""
    filled = [one for one in micro_batches if one.rows]
    if not filled:
        return None
    phases = dict.fromkeys(phase for one in filled for phase in one.phases_ms)
    return MicroBatches(
        count=len(filled),
        rows=statistics.median(one.rows for one in filled),
        phases_ms={phase: statistics.median(one.phases_ms.get(phase, 0) for one in filled) for phase in phases},
        s3_requests=statistics.median(one.s3_requests for one in filled),
    )


def phases_ms(duration: Mapping[str, float] | float) -> Mapping[str, float]:
    """The phases of a `committed` event, whose duration may be only the total."""
    return dict(duration) if isinstance(duration, Mapping) else {TOTAL: duration}
