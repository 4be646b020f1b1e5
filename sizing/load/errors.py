"""The errors of planning for a load."""

from __future__ import annotations

from penstock.sizing.errors import Infeasible


class LoadOutOfReach(Infeasible):
    """However many slots there are, they do not process what the load asks for, or more slots no longer help."""

    code = "SIZ-045"
    title = "no parallelism carries the load"


class TriggerTooShort(Infeasible):
    """What a micro-batch takes apart from its rows leaves too little of the trigger for them."""

    code = "SIZ-046"
    title = "the trigger is too short for the load"


class ParallelismBelowLoad(Infeasible):
    """The parallelism is fixed, in the app for example, and carries less than the load."""

    code = "SIZ-047"
    title = "the parallelism is too low for the load"


class PartitionsBelowLoad(Infeasible):
    """The topics have fewer partitions than tasks are needed to read the load."""

    code = "SIZ-048"
    title = "the topics have too few partitions for the load"
