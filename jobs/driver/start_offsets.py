"""Where the queries of a job start that have no checkpoint yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.jobs.driver import rewind
from penstock.jobs.driver.bounded import BoundedRun
from penstock.jobs.driver.generations import Generations
from penstock.jobs.driver.micro_batch import Emit
from penstock.jobs.kafka.brokers import Brokers
from penstock.jobs.sources.opening import Offsets
from penstock.jobs.spec import JobSpec


class StartOffsets:
    """The start offsets of a job's topics.

    Args:
        spec: the job's.
        brokers: connects to the brokers.
        generations: decided.
        bounded: of a bounded run, otherwise None.
        emit: reports an event.
    """

    def __init__(
        self, spec: JobSpec, brokers: Callable[[], Brokers], generations: Generations, bounded: BoundedRun | None, emit: Emit
    ) -> None:
        self._spec = spec
        self._brokers = brokers
        self._generations = generations
        self._bounded = bounded
        self._emit = emit
        self._said: rewind.Rewind | None = None

    @property
    def by_group(self) -> bool:
        """Whether any source starts where its consumer group is."""
        return any(source.starting_offsets.startswith("committed") for source in self._spec.kafka_sources.values())

    def find(self, *, begun: bool = False) -> Mapping[str, Offsets]:
        """Source -> topic -> partition -> start offset of a query without a checkpoint.

        Args:
            begun: whether all queries have a checkpoint, which takes precedence over offsets committed to the consumer group.

        Raises:
            PenstockError: JOB-001, JOB-002, JOB-008, JOB-009, JOB-020, JOB-023, JOB-093, JOB-107.
        """
        sources = self._spec.kafka_sources
        if not sources:
            return self._within_the_ends({}, {})
        brokers = self._brokers()
        try:
            starts = self._starts(brokers, begun=begun)
            return self._within_the_ends(starts, brokers.ends(sources)) if self._bounded else starts
        finally:
            brokers.close()

    def _starts(self, brokers: Brokers, *, begun: bool) -> Mapping[str, Offsets]:
        sources, rewinds_to = self._spec.kafka_sources, self._generations.rewinds_to
        if rewinds_to is None:
            return rewind.with_recorded(brokers.starts(sources, begun=begun), self._generations.starts)
        found = rewind.to(rewinds_to, sources, brokers)
        if self._said is None:
            self._said = found
            self._emit("rewinding", {"to": rewind.written(rewinds_to), "records": found.records})
        return found.starts

    def _within_the_ends(self, starts: Mapping[str, Offsets], latest: Mapping[str, Offsets]) -> Mapping[str, Offsets]:
        if self._bounded is None:
            return starts
        self._bounded.begin(latest)
        return self._bounded.within(starts)
