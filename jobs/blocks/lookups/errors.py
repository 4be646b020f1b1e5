"""Errors of lookups (JOB-...)."""

from __future__ import annotations

from penstock.sizing.errors import RunFailed


class LookupTableDoesNotFit(RunFailed):
    """A lookup's table does not exist, lacks a column, or has several rows for one key."""

    code = "JOB-071"
    title = "table does not match its lookup"


class LookupRefused(RunFailed):
    """A database rejected a lookup for good: missing privileges, or a value out of range for its type. A retry would not help."""

    code = "JOB-072"
    title = "database rejected a lookup"
