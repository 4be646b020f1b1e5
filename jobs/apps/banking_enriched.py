"""banking_enriched: transactions with their account at that time, the customer from the bank's database, and a risk class."""

from decimal import Decimal

from pyspark.sql import functions as F

from penstock import Job, Side, Tag, lookup_join, temporal_join

OPERATORS = ("read-transactions", "read-accounts", "join-account", "look-up-customer", "risk", "write-transactions")

TRANSACTIONS = (
    "transaction_id STRING NOT NULL, account_id STRING NOT NULL, amount DECIMAL(12,2) NOT NULL, type STRING NOT NULL, "
    "status STRING NOT NULL, at STRING"
)
ACCOUNTS = (
    "account_id STRING NOT NULL, customer_id STRING NOT NULL, product STRING NOT NULL, credit_limit DECIMAL(12,2) NOT NULL, at STRING"
)


def risk_class(amount: Decimal | None, credit_limit: Decimal | None, segment: str | None) -> str:
    """Risk of a transaction: its share of the account's limit, which is doubled for a business."""
    if amount is None or credit_limit is None or segment is None:
        return "unknown"
    share = amount / (credit_limit * (2 if segment == "business" else 1))
    return "high" if share > Decimal("0.5") else "medium" if share > Decimal("0.1") else "low"


def build(job: Job) -> None:
    """Declares the job."""
    transactions = job.source("transactions", TRANSACTIONS)
    accounts = job.source("accounts", ACCOUNTS)
    valid = temporal_join(Side("t", transactions, "account_id"), Side("a", accounts, "account_id"), how="left")
    fields = {name: f"t.{name}" for name in ("transaction_id", "account_id", "amount", "type", "status", "at")}
    rows = valid.select(**fields, customer_id="a.customer_id", product="a.product", credit_limit="a.credit_limit")
    known = lookup_join(rows, job.table("customers"), on="customer_id", name="c")
    risk = F.udf(risk_class, "string")("amount", "credit_limit", "c.segment")
    kept = {name: name for name in (*fields, "customer_id", "product")}
    job.write(known.select(**kept, name="c.name", country="c.country", risk=risk), "out")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
