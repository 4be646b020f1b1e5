"""A job's measured profile: what its slots and CPU seconds process, and what that is on other machines."""

from __future__ import annotations

import statistics
from typing import Annotated, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from penstock.sizing.load.spread import Spread

# Of the calibration's work: numbers of different versions can't be compared.
CALIBRATION_VERSION = 1
# Source: the assumptions of a plan: a node boots in 60 s, a driver and an executor start in 20 s each.
POD_START_S = 100.0


def of_document(value: object) -> object:
    """A list of a document as a tuple, which is frozen; anything else as it is."""
    return tuple(value) if isinstance(value, list) else value


class _Measured(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)


class CalibratedMachine(_Measured):
    """A machine, and how fast the calibration's fixed work is on it.

    Args:
        name: EC2 instance type, or the model of its CPU.
        cores: that it has.
        version: of the calibration's work.
        events_per_cpu_s: records of that work per CPU second, with all cores busy.
    """

    name: Annotated[str, Field(min_length=1, max_length=200)]
    cores: Annotated[int, Field(ge=1, le=4096)]
    version: Annotated[int, Field(ge=1)] = CALIBRATION_VERSION
    events_per_cpu_s: Spread

    @model_validator(mode="after")
    def _some(self) -> Self:
        if self.events_per_cpu_s.low <= 0:
            raise ValueError("a calibration above 0")
        return self


class MeasuredJob(_Measured):
    """A measured profile of a job.

    Args:
        events_per_slot_per_s: of one slot that has a core.
        events_per_cpu_s: of all of the job's processes; None: not measured, as in a deployment.
        batch_overhead_s: fixed time of a micro-batch.
        restart_s: from the stop of a driver to the first commit of the next; None: not measured.
        restart_of_deployment: whether that includes what pods take to start.
        bytes_per_key: of a row of the state, the key included; None: no state.
        machine: where it was measured; None: not calibrated.
        calibrated: other machines, on which the job is to run.
        date: ISO date of the measurement.
        source: what was measured and where, for display.
    """

    events_per_slot_per_s: Spread
    events_per_cpu_s: Spread | None = None
    batch_overhead_s: Spread | None = None
    restart_s: Spread | None = None
    restart_of_deployment: bool = False
    bytes_per_key: Spread | None = None
    machine: CalibratedMachine | None = None
    calibrated: Annotated[tuple[CalibratedMachine, ...], BeforeValidator(of_document), Field(max_length=100)] = ()
    date: str = ""
    source: str = ""

    @model_validator(mode="after")
    def _rates(self) -> Self:
        if self.events_per_slot_per_s.low <= 0 or (self.events_per_cpu_s is not None and self.events_per_cpu_s.low <= 0):
            raise ValueError("rates above 0")
        if self.calibrated and self.machine is None:
            raise ValueError("the calibration of the machine where the job was measured, to compare others with")
        return self

    @property
    def speed(self) -> Spread:
        """How fast the calibrated machines are, measured by the one where the job was measured: the slowest, the median, the fastest.

        1 without any. The ratio of two machines is that of their typical events per CPU second.
        """
        if self.machine is None or not self.calibrated:
            return Spread.exactly(1.0)
        own = self.machine.events_per_cpu_s.typical
        ratios = [machine.events_per_cpu_s.typical / own for machine in self.calibrated]
        return Spread(low=min(ratios), typical=statistics.median(ratios), high=max(ratios))

    def slot_rate(self, cores_per_slot: float) -> Spread:
        """Events per second of one slot of an executor: speed x min(a slot's own rate, cores of a slot x events per CPU second).

        A slot of one core that is measured with more than that, as a JVM and a Python worker may take, gets no more than its core computes.

        Args:
            cores_per_slot: CPU request of an executor divided by its slots.
        """
        rate = self.events_per_slot_per_s
        if self.events_per_cpu_s is not None:
            by_cpu = self.events_per_cpu_s.with_each(Spread.exactly(cores_per_slot), lambda events, cores: events * cores)
            rate = rate.with_each(by_cpu, min)
        return rate.with_each(self.speed, lambda events, speed: events * speed)

    def typical_slot_rate(self, cores_per_slot: float) -> float:
        """The typical one of `slot_rate`, which a plan asks for at many numbers of slots."""
        rate = self.events_per_slot_per_s.typical
        if self.events_per_cpu_s is not None:
            rate = min(rate, self.events_per_cpu_s.typical * cores_per_slot)
        return rate * self.speed.typical if self.calibrated else rate

    @property
    def planned_restart_s(self) -> float | None:
        """Seconds of a restart in a deployment: the typical ones, and those of a node and its pods where they were not measured."""
        if self.restart_s is None:
            return None
        return self.restart_s.typical + (0.0 if self.restart_of_deployment else POD_START_S)

    @property
    def machines_text(self) -> str:
        """Where it was measured, and what it is scaled to, for people."""
        where = "" if self.machine is None else f" on {self.machine.name} with {self.machine.cores} cores"
        if not self.calibrated:
            return f"measured{where}"
        return f"measured{where}, scaled to {', '.join(machine.name for machine in self.calibrated)} by calibration"
