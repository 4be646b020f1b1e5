"""Errors of state sizing."""

from __future__ import annotations

from penstock.sizing.errors import Infeasible


class StateDoesNotFit(Infeasible):
    """The state of joins and aggregations needs more memory than an executor has available for it."""

    code = "SIZ-043"
    title = "state does not fit the executors' memory"


class CheckpointTooBusy(Infeasible):
    """A micro-batch writes more checkpoint objects than S3 accepts within one trigger interval."""

    code = "SIZ-044"
    title = "checkpoint exceeds S3's request rate"
