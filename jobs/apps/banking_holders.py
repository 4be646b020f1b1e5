"""banking_holders: a table of all open accounts with their customers, updated by the changes and deletions of both topics."""

from penstock import DELETED, Job, Side, Tag, regular_join

# An account may move to another customer, so a step by account keeps the customer that it had.
OPERATORS = {
    "read-customers": None,
    "read-accounts": None,
    "accounts-by-id": "other",
    "join-by-customer": "other",
    "write-holders": None,
}

CUSTOMERS = "customer_id STRING NOT NULL, name STRING NOT NULL, segment STRING NOT NULL, at STRING"
ACCOUNTS = (
    "account_id STRING NOT NULL, customer_id STRING NOT NULL, product STRING NOT NULL, credit_limit DECIMAL(12,2) NOT NULL, at STRING"
)


def build(job: Job) -> None:
    """Declares the job."""
    customers = Side("c", job.source("customers", CUSTOMERS), "customer_id", unique="customer_id")
    accounts = Side("a", job.source("accounts", ACCOUNTS), "customer_id", unique="account_id")
    own = {name: f"a.{name}" for name in ("account_id", "customer_id", "product", "credit_limit")}
    holders = regular_join(customers, accounts, emit="current")
    job.write(holders.select(**own, name="c.name", segment="c.segment", **{DELETED: DELETED}), "out")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
