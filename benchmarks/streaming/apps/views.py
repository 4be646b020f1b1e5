"""Views to files, unchanged."""

from penstock import Job, Tag

OPERATORS = ("read-events", "filter-views", "write-views")
SCHEMA = "ad_id STRING NOT NULL, event_type STRING NOT NULL, event_time BIGINT, user_id STRING"


def build(job: Job) -> None:
    """Declares the job."""
    views = job.source("events", SCHEMA).filter("event_type = 'view'")
    job.write(views.select(ad_id="ad_id", user_id="user_id", event_time="event_time"), "out")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
