"""A load: what comes in, what a slot makes of it, and how fast a backlog has to go."""

from __future__ import annotations

from bisect import bisect_left
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from penstock.sizing.load.profile import Profile

# Source: Flink Kubernetes operator 1.15, AutoScalerOptions: target utilisation, restart time and catch-up duration.
DEFAULT_UTILISATION = 0.7
DEFAULT_RESTART_S = 300.0
DEFAULT_CATCH_UP_S = 1800.0
# Secondary: what one partition takes from a producer and gives to a consumer depends on its batches and on compression; an input.
DEFAULT_PARTITION_MIBPS = 10.0
# Source: p50 of a micro-batch that has next to no rows, checkpoint on s3a, measured 2026-11-21 (Spark 4.3.0): 448 ms.
DEFAULT_BATCH_OVERHEAD_S = 0.5
# Flink's own bound, as in `penstock.sizing.targets`.
MOST_SLOTS = 32_768

_Positive = Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)]
_Seconds = Annotated[float, Field(ge=0, le=31_536_000, allow_inf_nan=False)]


class Load(BaseModel):
    """What a job has to process; the topics that it reads are counted together.

    Args:
        events_per_s: on average over a day.
        event_bytes: of one event as Kafka stores it, compressed if it is.
        events_per_slot_per_s: what one slot processes in a steady state; this or `profile`.
        profile: measured throughput; this or `events_per_slot_per_s`.
        peak_factor: the peak's rate over the average.
        utilisation: share of the throughput that the peak may take.
        restart_s: for how long nothing is processed when the job starts again.
        catch_up_s: within which the backlog of a restart has to be gone, at the peak.
        backlog_events: that wait already.
        retention_h: how long Kafka keeps the events.
        fan_out: consumer groups that read each event, this job's among them.
        replication: copies that Kafka keeps.
        state_keys: that joins and aggregations keep at a time.
        bytes_per_key: of state for one key, the key included.
        stateful_operators: one entry for each; a stream-stream join has more stores than others.
        partition_in_mibps: what one partition takes from producers (secondary).
        partition_out_mibps: what one partition gives to a consumer (secondary).
        batch_overhead_s: what a micro-batch takes beside its rows.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    events_per_s: _Positive
    event_bytes: Annotated[int, Field(ge=1, le=104_857_600)]
    events_per_slot_per_s: _Positive | None = None
    profile: Profile | None = None
    peak_factor: Annotated[float, Field(ge=1, le=1000, allow_inf_nan=False)] = 1.0
    utilisation: Annotated[float, Field(ge=0.01, le=1)] = DEFAULT_UTILISATION
    restart_s: _Seconds = DEFAULT_RESTART_S
    catch_up_s: Annotated[float, Field(ge=1, le=31_536_000, allow_inf_nan=False)] = DEFAULT_CATCH_UP_S
    backlog_events: Annotated[int, Field(ge=0, le=10**15)] = 0
    retention_h: Annotated[float, Field(gt=0, le=876_000, allow_inf_nan=False)] = 24.0
    fan_out: Annotated[float, Field(ge=1, le=1000, allow_inf_nan=False)] = 1.0
    replication: Annotated[int, Field(ge=1, le=15)] = 3
    state_keys: Annotated[int, Field(ge=0, le=10**13)] = 0
    bytes_per_key: Annotated[int, Field(ge=0, le=10**9)] = 0
    stateful_operators: tuple[Literal["join", "other"], ...] = ()
    partition_in_mibps: _Positive = DEFAULT_PARTITION_MIBPS
    partition_out_mibps: _Positive = DEFAULT_PARTITION_MIBPS
    batch_overhead_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = DEFAULT_BATCH_OVERHEAD_S

    @model_validator(mode="after")
    def _one_throughput(self) -> Self:
        if (self.events_per_slot_per_s is None) == (self.profile is None):
            raise ValueError("exactly one of events_per_slot_per_s and profile")
        return self

    @property
    def peak_events_per_s(self) -> float:
        """The rate to plan for."""
        return self.events_per_s * self.peak_factor

    @property
    def state_bytes(self) -> int:
        """Of the whole query, one version."""
        return self.state_keys * self.bytes_per_key

    @property
    def operators(self) -> tuple[Literal["join", "other"], ...]:
        """The stateful operators; where there is state, at least one."""
        return self.stateful_operators or (("other",) if self.state_bytes else ())

    def mibps(self, events_per_s: float) -> float:
        """A rate of events in MiB/s."""
        return events_per_s * self.event_bytes / (1024 * 1024)

    def throughput(self, slots: int) -> float:
        """Events a second that so many slots process in a steady state."""
        if self.events_per_slot_per_s is not None:
            return slots * self.events_per_slot_per_s
        assert self.profile is not None
        return self.profile.events_per_s(slots)

    def slots_for(self, events_per_s: float) -> int | None:
        """The fewest slots that process a rate; None where `MOST_SLOTS` do not."""
        found = bisect_left(range(1, MOST_SLOTS + 1), events_per_s, key=self.throughput)
        return found + 1 if found < MOST_SLOTS else None
