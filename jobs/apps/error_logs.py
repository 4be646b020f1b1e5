"""error_logs: log lines that contain ERROR, in upper case."""

from penstock import Job

OPERATORS = ("read-logs", "to-upper-case", "filter-errors", "write-errors")


def build(job: Job) -> None:
    """Declares the job."""
    logs = job.source("logs", "line STRING")
    job.write(logs.select(line="upper(line)").filter("line like '%ERROR%'"), "out")
    job.side_output("quarantine")
