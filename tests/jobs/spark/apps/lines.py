"""Lines of text, unchanged."""

from penstock import Job


def build(job: Job) -> None:
    job.write(job.source("a", "line STRING"), "out")
    job.side_output("errors")
