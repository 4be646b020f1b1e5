"""keyword_lines: lines of text files that contain a word, repartitioned among ten tasks: a bounded run over the existing files."""

from penstock import Job

OPERATORS = ("read-text", "filter", "repartition", "write-lines")


def build(job: Job) -> None:
    """Declares the job."""
    lines = job.source("lines", "line STRING").filter(f"line like '%{job.parameters['keyword']}%'")
    job.write(lines.transform(lambda frame: frame.repartition(10, "line")), "out")
    job.side_output("errors")
