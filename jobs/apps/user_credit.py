"""user_credit: events of services A and B that belong together, within a minute of each other.

Topics A and B are joined by token with -60 s..+60 s; the pairs go to S3 by date, what does not parse to quarantine, what is late to a
topic of its own.
"""

from jobs.job import Job
from jobs.joins import Side, interval_join
from jobs.streams import Tag

OPERATORS = ("read-a", "read-b", "join-by-token", "write-user-data")


def build(job: Job) -> None:
    """Declares the job."""
    a = job.source("a", "token STRING NOT NULL, event_timestamp STRING, user_id STRING, amount DOUBLE")
    b = job.source("b", "token STRING NOT NULL, event_timestamp STRING, credit_limit DOUBLE")
    pairs = interval_join(Side("a", a, "token"), Side("b", b, "token"), lower="-60s", upper="60s")
    user_data = pairs.select(
        token="a.token",
        user_id="a.user_id",
        amount="a.amount",
        credit_limit="b.credit_limit",
        a_timestamp="a.event_timestamp",
        b_timestamp="b.event_timestamp",
    )
    job.write(user_data, "out")
    job.side_output("errors", Tag.QUARANTINED)
    job.side_output("late", Tag.LATE)
