"""Numbers that are halved until they are 1, a round each."""

from penstock import Job, union


def build(job: Job) -> None:
    first = job.source("a", "n BIGINT NOT NULL").select(n="n", left="n", round="0")
    again = job.source("again", "n BIGINT NOT NULL, left BIGINT NOT NULL, round INT")
    halved = union(first, again).select(n="n", left="left div 2", round="round")
    job.write(halved, {"out": "left <= 1", "again": "left > 1"})
    job.side_output("errors")
    job.side_output("late", "rounds")
