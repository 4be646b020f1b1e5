"""banking_totals: approved amounts since the start of the hour, by type, emitted every ten minutes."""

from penstock import Job, Tag, aggregate, cumulative, deduplicate

OPERATORS = ("read-transactions", "deduplicate", "filter-approved", "sum-by-type", "write-totals")

TRANSACTIONS = (
    "transaction_id STRING NOT NULL, account_id STRING NOT NULL, amount DECIMAL(12,2) NOT NULL, type STRING NOT NULL, "
    "status STRING NOT NULL, at STRING"
)


def build(job: Job) -> None:
    """Declares the job."""
    transactions = job.source("transactions", TRANSACTIONS)
    approved = deduplicate(transactions, ["transaction_id"], within="10m", keep="first").filter("status = 'approved'")
    hour = cumulative("1h", step="10m")
    totals = aggregate(approved, hour, keys=["type"], transactions="count(*)", total="cast(sum(amount) as string)")
    job.write(totals, "out")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
