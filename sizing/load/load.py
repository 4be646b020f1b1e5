"""A load: the incoming events, the throughput of a slot, and the required catch-up time."""

from __future__ import annotations

from bisect import bisect_left
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from penstock.sizing.load.measured_job import MeasuredJob
from penstock.sizing.load.profile import Profile
from penstock.sizing.load.spread import Spread

# Source: Flink Kubernetes operator 1.15, AutoScalerOptions: target utilisation, restart time and catch-up duration.
DEFAULT_UTILISATION = 0.7
DEFAULT_RESTART_S = 300.0
DEFAULT_CATCH_UP_S = 1800.0
# Secondary: the ingress and egress of one partition depend on batching and compression; an input.
DEFAULT_PARTITION_MIBPS = 10.0
# Source: a micro-batch with next to no rows, checkpoint on an S3 on the same machine (Spark 4.3.0): 448 ms on 2026-11-21; 247 ms without
# state and 449 ms with a window of four tasks on 2026-11-29, by `benchmarks.small_batches`. S3 itself is farther away.
DEFAULT_BATCH_OVERHEAD_S = 0.5
# Flink's limit, as in `penstock.sizing.targets`.
MOST_SLOTS = 32_768

_Positive = Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)]
_Seconds = Annotated[float, Field(ge=0, le=31_536_000, allow_inf_nan=False)]


class Load(BaseModel):
    """The load of a job; the topics that it reads are counted together.

    Args:
        events_per_s: average over a day.
        event_bytes: size of one event as stored by Kafka, after compression.
        events_per_slot_per_s: steady-state throughput of one slot, as assumed; this, `profile` or `measured`.
        profile: throughput measured at numbers of slots; this, `events_per_slot_per_s` or `measured`.
        measured: what `penstock profile` has measured; this, `events_per_slot_per_s` or `profile`.
        profile_changes: what of the job has changed since `measured` was measured: ``app``, ``spec``.
        cores_per_slot: CPU request of an executor divided by its slots, which limits a slot of `measured`.
        peak_factor: peak rate over average rate.
        utilisation: share of the throughput that the peak may use.
        restart_s: duration of a restart, without processing.
        catch_up_s: time within which the backlog of a restart must be drained, at the peak.
        backlog_events: existing backlog.
        retention_h: retention of the events in Kafka.
        fan_out: consumer groups that read each event, including this job's.
        replication: replicas in Kafka.
        state_keys: keys in the state of joins and aggregations at any time.
        bytes_per_key: state size of one key, including the key.
        stateful_operators: one entry per operator; a stream-stream join has more stores than others.
        partition_in_mibps: maximum ingress of one partition (secondary).
        partition_out_mibps: maximum egress of one partition (secondary).
        batch_overhead_s: fixed cost of a micro-batch in addition to its rows.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    events_per_s: _Positive
    event_bytes: Annotated[int, Field(ge=1, le=104_857_600)]
    events_per_slot_per_s: _Positive | None = None
    profile: Profile | None = None
    measured: MeasuredJob | None = None
    profile_changes: tuple[Literal["app", "spec"], ...] = ()
    cores_per_slot: _Positive = 1.0
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
        if sum(given is not None for given in (self.events_per_slot_per_s, self.profile, self.measured)) != 1:
            raise ValueError("exactly one of events_per_slot_per_s, profile and measured")
        return self

    @property
    def slot_rate(self) -> Spread | None:
        """Measured events per second of one slot of an executor, with their spread; None: they are assumed, or of a profile of points."""
        return None if self.measured is None else self.measured.slot_rate(self.cores_per_slot)

    def assuming(self, events_per_slot_per_s: float) -> Load:
        """The same load with an assumed throughput of a slot."""
        return self.model_copy(update={"events_per_slot_per_s": events_per_slot_per_s, "profile": None, "measured": None})

    @property
    def peak_events_per_s(self) -> float:
        """The rate to plan for."""
        return self.events_per_s * self.peak_factor

    @property
    def state_bytes(self) -> int:
        """State of the whole query, one version."""
        return self.state_keys * self.bytes_per_key

    @property
    def operators(self) -> tuple[Literal["join", "other"], ...]:
        """The stateful operators; at least one if there is state."""
        return self.stateful_operators or (("other",) if self.state_bytes else ())

    def mibps(self, events_per_s: float) -> float:
        """Converts a rate of events to MiB/s."""
        return events_per_s * self.event_bytes / (1024 * 1024)

    def throughput(self, slots: int) -> float:
        """Steady-state throughput of this many slots, in events per second."""
        if self.events_per_slot_per_s is not None:
            return slots * self.events_per_slot_per_s
        if self.measured is not None:
            return slots * self.measured.typical_slot_rate(self.cores_per_slot)
        assert self.profile is not None
        return self.profile.events_per_s(slots)

    def slots_for(self, events_per_s: float) -> int | None:
        """The minimum number of slots for a rate; None if `MOST_SLOTS` are not enough."""
        position = bisect_left(range(1, MOST_SLOTS + 1), events_per_s, key=self.throughput)
        return position + 1 if position < MOST_SLOTS else None
