"""banking_fraud: alerts for accounts with three or more declined payments followed by an approved one above 500 within ten minutes."""

from penstock import Job, Step, Tag, deduplicate, pattern

OPERATORS = ("read-transactions", "deduplicate", "find-pattern", "write-alerts")

TRANSACTIONS = (
    "transaction_id STRING NOT NULL, account_id STRING NOT NULL, amount DECIMAL(12,2) NOT NULL, type STRING NOT NULL, "
    "status STRING NOT NULL, at STRING"
)


def build(job: Job) -> None:
    """Declares the job."""
    transactions = job.source("transactions", TRANSACTIONS)
    once = deduplicate(transactions, ["transaction_id"], within="10m", keep="first")
    steps = (Step("declined", "status = 'declined'", times=3), Step("approved", "status = 'approved' and amount > 500"))
    matches = pattern(once, ["account_id"], steps, within="10m", tie=["transaction_id"])
    alerts = matches.select(
        account_id="account_id",
        transaction_id="approved[0].transaction_id",
        amount="cast(approved[0].amount as string)",
        declined="transform(declined, one -> one.transaction_id)",
        first_time="first_time",
        last_time="last_time",
    )
    job.write(alerts, {"alerts": None, "topic": None})
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
