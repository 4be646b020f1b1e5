"""ad_impressions: views of each campaign in windows of ten seconds, the Yahoo streaming benchmark.

The spec's parameter `emit` selects the results: ``updates``, the current value at every trigger, or ``final``, each window once.
"""

from penstock import Emit, Job, Side, Tag, aggregate, broadcast_join, tumbling

OPERATORS = ("read-events", "read-campaigns", "filter-views", "join-campaigns", "count-by-campaign", "write-counts")

EVENTS = (
    "ad_id STRING NOT NULL, ad_type STRING NOT NULL, event_type STRING NOT NULL, event_time BIGINT, "
    "user_id STRING, page_id STRING, ip STRING"
)


def build(job: Job) -> None:
    """Declares the job."""
    views = job.source("events", EVENTS).filter("event_type = 'view'").select(ad_id="ad_id")
    campaigns = job.source("campaigns", "ad_id STRING NOT NULL, campaign_id STRING NOT NULL, at STRING")
    joined = broadcast_join(Side("v", views, "ad_id"), Side("c", campaigns, "ad_id")).select(campaign_id="c.campaign_id")
    emit: Emit = "updates" if job.parameters["emit"] == "updates" else "final"
    counts = aggregate(joined, tumbling("10s"), keys=["campaign_id"], emit=emit, views="count(*)")
    job.write(counts.select(campaign_id="campaign_id", window_start_ms="unix_millis(window_start)", views="views"), "out")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
