"""The errors of the state's sizing."""

from __future__ import annotations

from penstock.sizing.errors import Infeasible


class StateDoesNotFit(Infeasible):
    """The state of joins and aggregations takes more of an executor's memory than there is for it."""

    code = "SIZ-043"
    title = "the state does not fit the executors' memory"


class CheckpointTooBusy(Infeasible):
    """A micro-batch writes more objects than the object store takes in the time between two triggers."""

    code = "SIZ-044"
    title = "the checkpoint writes more objects than S3 takes"
