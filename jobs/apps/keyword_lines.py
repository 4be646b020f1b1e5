"""keyword_lines: the lines of text files that have a word in them, spread over ten tasks: a batch job, run once on what is there."""

from penstock import Job

OPERATORS = ("read-text", "filter", "repartition", "write-lines")


def build(job: Job) -> None:
    """Declares the job."""
    lines = job.source("lines", "line STRING").filter(f"line like '%{job.parameters['keyword']}%'")
    job.write(lines.transform(lambda frame: frame.repartition(10, "line")), "out")
    job.side_output("errors")
