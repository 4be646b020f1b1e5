"""region_impressions: impressions by region in windows; the spec's parameter `window` selects their kind.

``tumbling``: five minutes. ``sliding``: the last ten minutes, every minute. ``sessions``: the activity of a session token until a gap of
thirty minutes.
"""

from penstock import Job, Tag, TimeWindow, aggregate, session, sliding, tumbling

OPERATORS = ("read-impressions", "sum-by-window", "write-windows")

SCHEMA = "region_code STRING NOT NULL, unique_session_token STRING NOT NULL, impressions BIGINT NOT NULL, at STRING"


def build(job: Job) -> None:
    """Declares the job."""
    impressions = job.source("impressions", SCHEMA)
    kinds: dict[str, TimeWindow] = {"tumbling": tumbling("5m"), "sliding": sliding("10m", every="1m"), "sessions": session("30m")}
    kind = str(job.parameters.get("window", "tumbling"))
    key = "unique_session_token" if kind == "sessions" else "region_code"
    job.write(aggregate(impressions, kinds[kind], keys=[key], events="count(*)", total_impressions="sum(impressions)"), "out")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
