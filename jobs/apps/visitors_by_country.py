"""visitors_by_country: number of visitors in each country during the last five minutes, every minute."""

from penstock import Job, Tag, aggregate, sliding

OPERATORS = ("read-visits", "count-by-country", "write-counts")


def build(job: Job) -> None:
    """Declares the job."""
    visits = job.source("visits", "country STRING NOT NULL, visitor STRING NOT NULL, at STRING")
    visitors = aggregate(visits, sliding("5m", every="1m"), keys=["country"], visitors="size(collect_set(visitor))", visits="count(*)")
    job.write(visitors, "out")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
