"""log_processing: statistics of each service's log in windows of ten seconds, written to Kafka with exactly-once delivery."""

from penstock import Job, Tag, aggregate, tumbling

OPERATORS = ("read-log", "statistics-by-service", "write-statistics")


def build(job: Job) -> None:
    """Declares the job."""
    events = job.source("log", "service STRING NOT NULL, level STRING NOT NULL, millis BIGINT, at STRING")
    statistics = aggregate(
        events,
        tumbling("10s"),
        keys=["service"],
        events="count(*)",
        errors="count_if(level = 'ERROR')",
        slowest_ms="max(millis)",
    )
    job.write(statistics, "out")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
