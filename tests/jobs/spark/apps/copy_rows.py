"""One input, unchanged, without rows named "skip"."""

from penstock import Job, Tag


def build(job: Job) -> None:
    rows = job.source("a", "key STRING NOT NULL, at STRING, name STRING, amount DOUBLE")
    job.write(rows.filter("name is null or name <> 'skip'").select(key="key", name="name", amount="amount"), "out")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
