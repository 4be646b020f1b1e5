"""How many rows there have been: an aggregation without keys, which one task runs."""

from pyspark.sql import functions as F

from penstock import Job

OPERATORS = {"read": None, "total": "other"}


def build(job: Job) -> None:
    rows = job.source("a", "key STRING, at STRING, name STRING")
    job.write(rows.df.agg(F.count("*").alias("n")), "out")
    job.side_output("errors")
