"""The sinks' records of their decisions in the checkpoint."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.errors import CheckpointDamaged

Written = TypeVar("Written", bound=BaseModel)


def read(checkpoint: Checkpoint, name: str, kind: type[Written]) -> Written | None:
    """Reads an object of the checkpoint that was written whole and once; None if it does not exist.

    Args:
        checkpoint: checkpoint to read.
        name: name of the object.
        kind: model of its content.

    Raises:
        CheckpointDamaged: JOB-008, it is empty or broken.
    """
    try:
        text = checkpoint.get(name)
        return None if text is None else kind.model_validate_json(text)
    except (ValidationError, UnicodeDecodeError) as error:
        raise CheckpointDamaged(
            path=f"{checkpoint.uri}/penstock/{name}",
            given=error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error),
            need="the object as the job wrote it",
            fix="restore an earlier object version or a copy; or start with an empty one: upgradeMode: stateless and another restartNonce",
        ) from None
