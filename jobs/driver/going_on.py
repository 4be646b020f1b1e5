"""What a driver that goes on with a checkpoint finds in it, before its app is built."""

from __future__ import annotations

from penstock.jobs.driver.errors import SocketHasNoPast
from penstock.jobs.spec import FromSocket, JobSpec
from penstock.jobs.storage.checkpoint import Checkpoint


def begun(checkpoint: Checkpoint) -> list[str]:
    """Names of the queries of a checkpoint that have committed a micro-batch; the first one's is empty.

    Raises:
        CheckpointDamaged: JOB-008.
        BucketUnreachable: JOB-009.
    """
    return [name for name in ["", *checkpoint.queries()] if checkpoint.of_query(name).last_record().batch >= 0]


def refuse_a_socket(spec: JobSpec, checkpoint: Checkpoint) -> None:
    """Rejects a job that reads a socket and goes on with a checkpoint.

    Raises:
        SocketHasNoPast: JOB-021.
        CheckpointDamaged: JOB-008.
        BucketUnreachable: JOB-009.
    """
    sockets = [name for name, source in spec.sources.items() if isinstance(source, FromSocket)]
    if sockets and begun(checkpoint):
        anew = "set upgradeMode: stateless and another restartNonce to start with an empty checkpoint"
        fix = f"{anew}; to resume without data loss, read from Kafka"
        raise SocketHasNoPast(path=f"spec.sources.{sockets[0]}.socket", given=checkpoint.uri, need="no checkpoint", fix=fix)
