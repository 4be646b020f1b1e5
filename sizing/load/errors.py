"""Errors of planning for a load."""

from __future__ import annotations

from penstock.sizing.errors import Infeasible


class LoadOutOfReach(Infeasible):
    """No number of slots processes the load, or adding slots no longer increases the throughput."""

    code = "SIZ-045"
    title = "no parallelism can sustain the load"


class TriggerTooShort(Infeasible):
    """The fixed cost of a micro-batch leaves too little of the trigger interval for its rows."""

    code = "SIZ-046"
    title = "trigger interval too short for the load"


class ParallelismBelowLoad(Infeasible):
    """The parallelism is fixed, for example in the app, and cannot sustain the load."""

    code = "SIZ-047"
    title = "parallelism too low for the load"


class PartitionsBelowLoad(Infeasible):
    """The topics have fewer partitions than the number of tasks needed to read the load."""

    code = "SIZ-048"
    title = "too few topic partitions for the load"
