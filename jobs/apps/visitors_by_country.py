"""visitors_by_country: the number of visitors of the last five minutes in each country, anew every minute."""

from penstock.jobs.blocks.windows import aggregate, sliding
from penstock.jobs.job import Job
from penstock.jobs.stream.streams import Tag

OPERATORS = ("read-visits", "count-by-country", "write-counts")


def build(job: Job) -> None:
    """Declares the job."""
    visits = job.source("visits", "country STRING NOT NULL, visitor STRING NOT NULL, at STRING")
    visitors = aggregate(visits, sliding("5m", every="1m"), keys=["country"], visitors="size(collect_set(visitor))", visits="count(*)")
    job.write(visitors, "out")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
