"""Another driver on the same checkpoint, as this one notices it: by Spark's logs, or by a record that it did not write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from penstock.jobs.driver.micro_batch import CheckpointAdvanced
from penstock.jobs.storage.errors import BucketUnreachable, CheckpointDamaged, ConcurrentWriter
from penstock.jobs.storage.lease import Lease

# What Spark reports if an entry of its logs exists that it is about to create. Source: Spark 4.3.0, error-conditions.json,
# CONCURRENT_STREAM_LOG_UPDATE; StreamMetadata.write. Metadata of state: the text of jobs/jvm's ConditionalOutputStream, as it is.
_SIGNS = (
    "CONCURRENT_STREAM_LOG_UPDATE",
    "Concurrent update to the log",
    "Multiple streaming queries are concurrently using",
    "was written by another driver",
)
# Times in a row, without a micro-batch of its own in between, that a query is planned again.
_TRIES = 5


class AnotherWriter(Exception):
    """Another driver has written to the checkpoint while this one ran.

    Args:
        committed: micro-batches that this one's query had committed before.
    """

    def __init__(self, committed: int = 0) -> None:
        super().__init__()
        self.committed = committed


def noticed(failure: BaseException) -> bool:
    """Whether a failure shows that another driver writes to the checkpoint."""
    return isinstance(failure, CheckpointAdvanced) or any(sign in str(failure) for sign in _SIGNS)


@contextmanager
def noticing() -> Iterator[None]:
    """Raises a failure that shows another driver as `AnotherWriter`."""
    try:
        yield
    except Exception as error:
        if noticed(error):
            raise AnotherWriter from error
        raise


def raise_if_lost(lease: Lease) -> None:
    """Finds out whether a failure is the consequence of a lost lease, which its message does not show.

    Raises:
        LeaseLost: JOB-081.
    """
    with suppress(BucketUnreachable, CheckpointDamaged):
        lease.confirm()


class Encounters:
    """Decides whether a driver goes on that has met another one.

    Args:
        lease: of this driver.
        checkpoint: ``s3a://bucket/folder``.
    """

    def __init__(self, lease: Lease, checkpoint: str) -> None:
        self._lease = lease
        self._checkpoint = checkpoint
        self._tries = 0

    def again(self, met: AnotherWriter) -> None:
        """Returns if the query is to be planned and started again from the checkpoint.

        Raises:
            LeaseLost: JOB-081, the other one has taken over.
            BucketUnreachable: JOB-009.
            ConcurrentWriter: JOB-083, it has not, and does not stop either.
        """
        self._lease.confirm()
        self._tries = 1 if met.committed else self._tries + 1
        if self._tries > _TRIES:
            raise ConcurrentWriter(
                path=self._checkpoint,
                given=f"{self._tries} concurrent updates in a row",
                need="no other writer: this driver holds the job's lease",
                fix="stop the other driver, which does not take the lease: another version of Penstock, or a query without it",
            ) from met
