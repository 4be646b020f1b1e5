"""Measures a job on this machine: the backlog of its topics at several numbers of slots, one after another, and its restarts.

For each number of slots a driver reads the backlog from an empty checkpoint in micro-batches of some seconds; after a warm-up they are
counted. It is stopped, and started again with micro-batches of a tenth: the time to the first commit is a restart, and the small
micro-batches say what a micro-batch takes without rows. Before all of that a short run finds out how large micro-batches are.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.spec import SpecFile
from penstock.jobs.spec.job_profile import Digest, JobProfile, ProfiledRun
from penstock.jobs.targets import targets
from penstock.scripts.installation.app_packages import InstalledPackages
from penstock.scripts.local import class_data, driver_conf
from penstock.scripts.local.driver import LocalDriver
from penstock.scripts.local.machine import cut
from penstock.scripts.profiling import machine, scratch_spec
from penstock.scripts.profiling.backlog_input import Backlog, TopicInput, inputs
from penstock.scripts.profiling.errors import TooFewMicroBatches, UnusableInput
from penstock.scripts.profiling.measured_place import CHECKPOINTS, OUTPUT, MeasuredPlace
from penstock.scripts.profiling.observed_driver import Observed, ObservedDriver
from penstock.scripts.progress import Step, Steps
from penstock.sizing.load.load import DEFAULT_BATCH_OVERHEAD_S
from penstock.sizing.load.measured_job import CalibratedMachine, MeasuredJob
from penstock.sizing.load.observation import LEAST_MICRO_BATCHES, MicroBatch, Rates, SlotsRun, rates_of
from penstock.sizing.load.spread import Spread
from penstock.sizing.plan import plan

# Ours: of the run that finds out how large micro-batches are.
_PILOT_RECORDS, _PILOT_BATCHES, _PILOT_BACKLOG = 5_000, 4, 30
# Ours: long enough that what a micro-batch takes without rows is a small part, short enough for many of them.
_BATCH_S = 3.0
_SMALL_PART = 10
_SMALL_BATCHES = 8
# Ours: where few micro-batches come in the time, because the machine is slow or busy, they are waited for, up to so many times as long.
_LONGEST = 5.0
_LEAST_RECORDS = 200
# Of the broker's disk.
_MOST_BACKLOG_BYTES = 2 * 1024**3
# The rate still rises after the first run's estimate, while code is compiled.
_RESERVE = 3.0
# Ours: late rows take less work than others, so of more of them the rates say nothing.
_MOST_LATE = 0.5
# Spark looks up each new key once more to count rows: only where micro-batches are small.
_COUNT_ROWS = {"spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "true"}


@dataclass(frozen=True)
class Effort:
    """How much is measured.

    Args:
        slots: numbers of slots, ascending.
        seconds: that each number is measured for.
        warm_up_s: before that.
    """

    slots: tuple[int, ...]
    seconds: float = 40.0
    warm_up_s: float = 15.0


@dataclass(frozen=True)
class Measurement:
    """A measured job, before it is a profile.

    Args:
        runs: by number of slots.
        restarts_s: seconds from the end of a driver to the first commit of the next.
        state_rows: at the end; None: no state.
        bytes_per_row: of the state, by run.
    """

    runs: Sequence[SlotsRun]
    restarts_s: Sequence[float]
    state_rows: int | None
    bytes_per_row: Sequence[float]

    @property
    def rates(self) -> Rates:
        """What the runs say together."""
        return rates_of(self.runs)


@dataclass
class LocalProfile:
    """A measurement of a job on this machine.

    Args:
        spec: of the job.
        app_path: folders of its app, besides that of the spec.
        packages: of its app.
        files: topic -> file with a record in each line, see `penstock.scripts.profiling.backlog_input.inputs`.
        effort: how much is measured.
        folder: an existing, empty folder.
        steps: shows progress.
    """

    spec: SpecFile
    app_path: tuple[Path, ...]
    packages: InstalledPackages
    files: Mapping[str, Path]
    effort: Effort
    folder: Path
    steps: Steps
    _runs: list[SlotsRun] = field(default_factory=list)
    _restarts_s: list[float] = field(default_factory=list)
    _bytes_per_row: list[float] = field(default_factory=list)
    _state_rows: int | None = None
    _fed: int = 0

    def measure(self) -> Measurement:
        """Measures the job.

        Raises:
            PenstockError: PROF-004 to PROF-006, what is wrong with the job, its input or this machine, and what its driver fails with.
        """
        scratch_spec.refuse_what_has_no_backlog(self.spec)
        folders = (self.spec.path.parent.resolve(), *self.app_path)
        place = MeasuredPlace(self.spec, (*folders, *self.packages.path), self.folder)
        partitions = math.lcm(*self.effort.slots)
        given = inputs(self.spec, self.app_path, self.packages, self.files, partitions, self.steps)
        backlog = Backlog(given, datetime.now(UTC))
        with self.steps.at("start", "starting an emulated S3 and Apache Kafka") as step:
            place.__enter__()
            step.said = f"emulated S3 at {place.aws.endpoint}, Kafka at {place.kafka.address}"
        try:
            place.create_topics(self.effort.slots)
            self._measure(place, given, backlog, partitions)
        finally:
            place.__exit__(None, None, None)
        return Measurement(self._runs, self._restarts_s, self._state_rows, self._bytes_per_row)

    def _measure(self, place: MeasuredPlace, given: Sequence[TopicInput], backlog: Backlog, partitions: int) -> None:
        first, most = self.effort.slots[0], self.effort.slots[-1]
        self._feed(place, given, backlog, partitions, _PILOT_BACKLOG * _PILOT_RECORDS)
        rate = self._pilot(place, first)
        cores = machine.cores()
        scale = {slots: min(slots, cores) / min(first, cores) for slots in self.effort.slots}
        needed = rate * scale[most] * (self.effort.seconds + self.effort.warm_up_s) * _RESERVE
        self._feed(place, given, backlog, partitions, min(needed, _MOST_BACKLOG_BYTES / backlog.mean_bytes))
        for slots in self.effort.slots:
            self._measured(place, slots, max(_LEAST_RECORDS, round(rate * scale[slots] * _BATCH_S)))

    def _feed(self, place: MeasuredPlace, given: Sequence[TopicInput], backlog: Backlog, partitions: int, records: float) -> None:
        until = max(self._fed + 1, math.ceil(records / backlog.records))
        with self.steps.at("feed", f"{until * backlog.records:,} records") as step:
            place.feed(given, backlog, range(self._fed, until), partitions, step)
            step.said = f"{(until - self._fed) * backlog.records:,} records, {len(given)} topics"
        self._fed = until

    def _pilot(self, place: MeasuredPlace, slots: int) -> float:
        """Events per second, roughly."""
        with self.steps.at("try", f"{slots} slots, micro-batches of {_PILOT_RECORDS:,} records") as step:
            with self._driver(place, slots, _PILOT_RECORDS, "pilot") as running:
                watched = ObservedDriver(running, place.check)
                between_s = (self.effort.warm_up_s, _LONGEST * self.effort.warm_up_s)
                seen = watched.watch(lambda now: _long_enough(now, 0.0, _PILOT_BATCHES, between_s, _shown_in(step, slots)))
                if watched.quarantined_all:
                    need = f"records that {self.spec.job.metadata.name} takes: it has quarantined all that it has read"
                    raise UnusableInput(path="--input" if self.files else "input", need=need, fix="name a file with records of its topics")
            batches = [batch for _, batch in seen.batches[-2:]]
            if not batches:
                raise UnusableInput(path="input", given="no record read", need="records in the job's topics", fix="name a file: --input")
            # Of so few records, what a micro-batch takes without any is a large part.
            rate = statistics.median(batch.rows / max(batch.seconds - DEFAULT_BATCH_OVERHEAD_S, batch.seconds / 5) for batch in batches)
            step.said = f"{rate:,.0f} events/s before code is compiled"
        return rate

    def _measured(self, place: MeasuredPlace, slots: int, records: int) -> None:
        """The runs of a number of slots: large micro-batches, and after a restart small ones."""
        warm_up_s, seconds = self.effort.warm_up_s, self.effort.seconds
        with self.steps.at("measure", f"{slots} slots, micro-batches of {records:,} records") as step:
            with self._driver(place, slots, records, "large") as running:
                watched = ObservedDriver(running, place.check)
                large = watched.watch(
                    lambda seen: _long_enough(seen, warm_up_s, LEAST_MICRO_BATCHES, (seconds, _LONGEST * seconds), _shown_in(step, slots))
                )
            self._refuse_late(watched.late_share)
            self._refuse_few(slots, large.after(warm_up_s))
            stopped_s = time.monotonic()
            small_records = max(_LEAST_RECORDS, records // _SMALL_PART)
            with self._driver(place, slots, small_records, "small", _COUNT_ROWS) as running:
                small = ObservedDriver(running, place.check).watch(
                    lambda seen: _long_enough(seen, warm_up_s / 2, _SMALL_BATCHES, (0.0, 2 * seconds), _shown_in(step, slots))
                )
            if small.first_commit_s is not None:
                self._restarts_s.append(small.first_commit_s - stopped_s)
            self._state_of(large, small)
            run = SlotsRun(slots, [*large.after(warm_up_s), *small.after(warm_up_s / 2)])
            self._runs.append(run)
            rate = run.events_per_s(run.line.fixed)
            step.said = (
                f"{slots} slots: {rate.typical:,.0f} events/s ({rate.low:,.0f} to {rate.high:,.0f}), {len(run.batches)} micro-batches"
            )

    def _refuse_late(self, share: float) -> None:
        """Raises if most records are late: their event times could not be moved, as of values that are not JSON."""
        if share > _MOST_LATE:
            need = (
                f"records that are not late when they are repeated: {share:.0%} are; event times are moved in JSON and in timestamps alone"
            )
            raise UnusableInput(path="--input" if self.files else "input", need=need, fix="name a file with enough records in their order")

    def _refuse_few(self, slots: int, batches: Sequence[MicroBatch]) -> None:
        if len(batches) < LEAST_MICRO_BATCHES:
            given = f"{len(batches)} at {slots} slots after {self.effort.warm_up_s:g} s of warm-up"
            fix = f"measure longer: --seconds {math.ceil(4 * self.effort.seconds)}"
            raise TooFewMicroBatches(path=self.spec.job.metadata.name, given=given, need=f"at least {LEAST_MICRO_BATCHES}", fix=fix)

    def _state_of(self, large: Observed, small: Observed) -> None:
        rows, size = small.state.get("rows", 0), small.state.get("bytes", 0)
        if rows:
            self._state_rows = rows
        if large.puts:
            self._bytes_per_row.append(large.put_bytes / large.puts)
        elif rows and size:
            # On the heap.
            self._bytes_per_row.append(size / rows)

    def _driver(self, place: MeasuredPlace, slots: int, records: int, name: str, more: Mapping[str, str] | None = None) -> LocalDriver:
        """A driver of its own folder; those of a number of slots have one checkpoint, but for the pilot's."""
        folder = self.folder / f"{name}-{slots}"
        beside = (self.spec.path.parent, *self.app_path)
        spec = scratch_spec.written(self.spec, slots, folder, beside)
        app_path = tuple(one.resolve() for one in beside)
        planned = plan(targets(spec, app_path))
        conf = driver_conf.of_run(folder, place.aws.endpoint, place.aws.region, self.packages.jars)
        # The compiler and the collector of production, not those with which a local run is up sooner.
        conf["spark.driver.extraJavaOptions"] = f'{class_data.options()} "-Djava.io.tmpdir={conf["spark.local.dir"]}"'.strip()
        checkpoint = "pilot" if name == "pilot" else str(slots)
        configuration = RuntimeConfiguration(
            spec=str(spec.path.resolve()),
            app_path=tuple(map(str, app_path)),
            package_path=tuple(map(str, self.packages.path)),
            master=f"local[{slots}]",
            brokers=place.kafka.address,
            job_folder=f"s3a://{CHECKPOINTS}/{checkpoint}/{spec.job.metadata.name}",
            output_bucket=OUTPUT,
            connections=place.servers.urls,
            max_offsets_per_trigger=records,
            spark_conf=planned.spark_conf | conf | cut(planned).spark_conf | dict(more or {}),
        )
        return LocalDriver(configuration, folder=folder, log=folder / "driver.log", environment=place.aws.environment())


def _long_enough(seen: Observed, warm_up_s: float, batches: int, between_s: tuple[float, float], shown: Callable[[Observed], None]) -> bool:
    """Whether so many micro-batches are measured, for at least so many seconds, or for more than the most."""
    shown(seen)
    least_s, most_s = between_s
    enough = len(seen.after(warm_up_s)) >= batches
    return seen.elapsed_s >= warm_up_s + (least_s if enough else most_s)


def _shown_in(step: Step, slots: int) -> Callable[[Observed], None]:
    """Shows how many micro-batches there are."""
    return lambda seen: step.watch(f"{slots} slots, {len(seen.batches)} micro-batches in {seen.elapsed_s:.0f} s")


def profile_of(
    spec: SpecFile, app_path: Sequence[Path], measured: Measurement, calibrated: CalibratedMachine | None, date: str
) -> JobProfile:
    """The profile of a measured job.

    Args:
        spec: of the job.
        app_path: folders of its app.
        measured: the measurement.
        calibrated: this machine; None: not calibrated.
        date: ISO date of today.
    """
    rates = measured.rates
    slots = ", ".join(str(run.slots) for run in measured.runs)
    job = MeasuredJob(
        events_per_slot_per_s=rates.events_per_slot_per_s,
        events_per_cpu_s=rates.events_per_cpu_s,
        batch_overhead_s=rates.batch_overhead_s,
        restart_s=Spread.of(measured.restarts_s) if measured.restarts_s else None,
        bytes_per_key=Spread.of(measured.bytes_per_row) if measured.bytes_per_row else None,
        machine=calibrated,
        date=date,
        source=f"local run of {date} at {slots} slots",
    )
    fixed_s = rates.batch_overhead_s.typical
    runs = tuple(
        ProfiledRun(
            slots=run.slots,
            micro_batches=len(run.batches),
            events=sum(batch.rows for batch in run.batches),
            events_per_s=run.events_per_s(fixed_s),
            busy_cores=run.busy_cores,
            others_busy_cores=run.others_busy_cores,
        )
        for run in measured.runs
    )
    return JobProfile(job=spec.job.metadata.name, digest=Digest.of(spec, app_path), measured=job, state_rows=measured.state_rows, runs=runs)
