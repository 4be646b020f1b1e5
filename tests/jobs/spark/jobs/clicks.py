"""Clicks with the section of the site, by a UDF of this package."""

from __future__ import annotations

import importlib

from pyspark.sql import functions as F

from penstock import Job

# As `from jobs.pages import section`, which a type checker would look for in this repository's own folder of that name.
section = importlib.import_module("jobs.pages").section


def build(job: Job) -> None:
    clicks = job.source("clicks", "user STRING NOT NULL, at STRING, page STRING")
    job.write(clicks.select(user="user", section=F.udf(section)("page")), "out")
    job.side_output("errors")
