"""Errors of a job's bucket, its checkpoint and its lease (JOB-...)."""

from __future__ import annotations

from penstock.sizing.errors import RunFailed


class CheckpointDamaged(RunFailed):
    """The checkpoint lacks its commits or the record of a committed micro-batch, or one of its objects is empty or corrupt."""

    code = "JOB-008"
    title = "corrupt checkpoint"


class BucketUnreachable(RunFailed):
    """A bucket does not exist, does not respond, or denies access."""

    code = "JOB-009"
    title = "bucket unavailable"


class CheckpointHeld(RunFailed):
    """Another driver holds the job's lease and renews it, so this one does not start."""

    code = "JOB-080"
    title = "another driver runs on this checkpoint"


class LeaseLost(RunFailed):
    """Another driver has taken over the checkpoint, so this one stops. It can begin no other micro-batch."""

    code = "JOB-081"
    title = "another driver has taken over this checkpoint"


class ConditionalWriteFailed(RunFailed):
    """S3 did not answer a conditional write, or answered only with conflicts. Nothing is lost: the job resumes from its checkpoint."""

    code = "JOB-082"
    title = "S3 did not decide a conditional write"


class ConcurrentWriter(RunFailed):
    """Spark's logs in the checkpoint are repeatedly written by another driver, one that does not take the lease."""

    code = "JOB-083"
    title = "another driver writes to this checkpoint"


class CheckpointMissing(RunFailed):
    """The job has run, and its checkpoint is gone. An empty one in its place would lose the state and begin anew without saying so."""

    code = "JOB-086"
    title = "the job's checkpoint is gone"


class AppArchiveUnusable(RunFailed):
    """The archive with the app of a session's job is not on S3, or is not the one that was deployed. The session's other jobs run on."""

    code = "JOB-112"
    title = "cannot use the archive of an app"
