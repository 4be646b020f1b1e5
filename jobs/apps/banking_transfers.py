"""banking_transfers: debits and credits of a transfer within five minutes of each other, and those without a counterpart."""

from penstock import Job, Side, Tag, interval_join

OPERATORS = ("read-debits", "read-credits", "join-by-reference", "write-settlements")

STATE = """
    case when d is null then 'credit only' when c is null then 'debit only' when d.amount = c.amount then 'settled' else 'differs' end
"""


def build(job: Job) -> None:
    """Declares the job."""
    debits = job.source("debits", "reference STRING NOT NULL, debit_id STRING NOT NULL, amount DECIMAL(12,2) NOT NULL, at STRING")
    credits_ = job.source("credits", "reference STRING NOT NULL, credit_id STRING NOT NULL, amount DECIMAL(12,2) NOT NULL, at STRING")
    transfers = interval_join(Side("d", debits, "reference"), Side("c", credits_, "reference"), lower="-5m", upper="5m", how="full")
    settlements = transfers.select(
        reference="coalesce(d.reference, c.reference)",
        debit_id="d.debit_id",
        credit_id="c.credit_id",
        debited="cast(d.amount as string)",
        credited="cast(c.amount as string)",
        state=STATE,
    )
    job.write(settlements, "out")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
