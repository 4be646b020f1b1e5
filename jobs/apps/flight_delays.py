"""flight_delays: delays of departures by carrier and scheduled hour."""

from penstock import Job, Tag, aggregate, tumbling

OPERATORS = ("read-departures", "delays-by-hour", "write-delays")

DEPARTURES = "id BIGINT NOT NULL, carrier STRING NOT NULL, scheduled_at STRING, dep_delay BIGINT"


def build(job: Job) -> None:
    """Declares the job."""
    departures = job.source("departures", DEPARTURES)
    delays = aggregate(
        departures,
        tumbling("1h"),
        keys=["carrier"],
        departures="count(*)",
        cancelled="count_if(dep_delay is null)",
        delayed=f"count_if(dep_delay >= {job.parameters['delayed_minutes']})",
        minutes_late="sum(if(dep_delay < 0, 0, dep_delay))",
        longest="max(dep_delay)",
    )
    job.write(delays, "out")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
