"""banking_split: deduplicated transactions, debits to one topic and credits to another."""

from penstock import Job, Tag, deduplicate

OPERATORS = ("read-transactions", "deduplicate", "write-debits", "write-credits")

TRANSACTIONS = (
    "transaction_id STRING NOT NULL, account_id STRING NOT NULL, amount DECIMAL(12,2) NOT NULL, type STRING NOT NULL, "
    "status STRING NOT NULL, at STRING"
)


def build(job: Job) -> None:
    """Declares the job."""
    transactions = job.source("transactions", TRANSACTIONS)
    once = deduplicate(transactions, ["transaction_id"], within="10m", keep="first")
    as_text = {name: name for name in once.fields} | {"amount": "cast(amount as string)"}
    job.write(once.select(**as_text), {"debits": "type = 'Debit'", "credits": "type = 'Credit'"})
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
