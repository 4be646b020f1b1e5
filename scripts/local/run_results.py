"""What a local run has written, as a reader of its sinks and side outputs finds it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.jobs.local.recording import Expectation
from penstock.jobs.stream.streams import Tag
from penstock.scripts.local import bad_records, recorded_run
from penstock.scripts.local.bad_records import Reason
from penstock.scripts.local.environment import LocalEnvironment
from penstock.scripts.local.job import Job
from penstock.scripts.local.job_progress import JobProgress
from penstock.scripts.local.results import Results, last_of
from penstock.scripts.local.verdict import Outcome, canonical

# Tags with a field of their own in an outcome.
_ACCOUNTED = {Tag.DATA, Tag.QUARANTINED, Tag.LATE, Tag.FILTERED, Tag.UNMATCHED}


@dataclass(frozen=True)
class RunResults:
    """A reader of a run's output.

    Args:
        job: the job.
        local: the local environment.
        progress: what the job's driver has reported.
        connections: name -> URL of the servers started for it.
    """

    job: Job
    local: LocalEnvironment
    progress: JobProgress
    connections: Mapping[str, str]

    def outcome(self, expected: Expectation | None, rows_in: int) -> Outcome:
        """What a reader finds in the bucket and in the topics.

        Args:
            expected: the expected output, which names what to read beside the rows; None if there is none.
            rows_in: records that the job read, without flush events.
        """
        results = {name: self._sinks.of(name, self.job.spec.job.spec.sinks[name]) for name in self.progress.reading["outputs"]}
        rows = {name: list(last_of(result.rows, expected.last_by if expected else ())) for name, result in results.items()}
        every = [row for some in rows.values() for row in some]
        return Outcome(
            rows_in=rows_in,
            rows=len(every),
            quarantined=self._side_output_rows(Tag.QUARANTINED),
            late=self._side_output_rows(Tag.LATE),
            filtered=self.progress.totals[Tag.FILTERED],
            unmatched=self.progress.totals[Tag.UNMATCHED],
            unread=0 if all(result.read_back for result in results.values()) else self.progress.totals[Tag.DATA],
            files=sum(result.files for result in results.values()),
            bytes=sum(result.bytes for result in results.values()),
            counted=Counter(map(canonical, every)) if expected and expected.exact is not None else None,
            measures=expected.measure(every) if expected and expected.measure else {},
            sinks={name: Counter(map(canonical, rows[name])) for name in expected.sinks} if expected else {},
            side_outputs={
                tag: self._side_output_rows(tag) for tag in (expected.side_outputs if expected else set(self.progress.totals) - _ACCOUNTED)
            },
        )

    def place(self) -> str:
        """Where the output is, for people."""
        sinks = self.job.spec.job.spec.sinks
        return ", ".join(self._sinks.of(name, sinks[name]).place for name in self.progress.reading["outputs"])

    def side_output_topic(self, tag: str) -> str | None:
        """The topic of the side output with a tag; None if the app has none."""
        name = self.progress.reading["sideOutputs"].get(tag)
        sink = self.job.spec.job.spec.kafka_sinks.get(name) if name else None
        return sink.topic if sink else None

    def reasons(self, tag: str) -> list[Reason]:
        """The most frequent reasons in the side output with a tag; none if it is no topic."""
        topic = self.side_output_topic(tag)
        return bad_records.of_topic(self.local.kafka.address, topic) if topic else []

    @property
    def _sinks(self) -> Results:
        return Results(self.local.s3, self.local.environment.spec.buckets.output, self.local.kafka.address, self.connections)

    def _side_output_rows(self, tag: str) -> int:
        topic = self.side_output_topic(tag)
        return recorded_run.count_records(self.local.kafka.address, topic) if topic else self.progress.totals[tag]
