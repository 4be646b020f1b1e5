"""What Spark's offset logs say of a checkpoint: ``offsets/N`` has a version, a line of metadata, and a line for each source."""

from __future__ import annotations

from pydantic import BaseModel, Field, ValidationError


class _Conf(BaseModel):
    """The settings of the first micro-batch, which Spark repeats in each log and applies at each start. It has some more."""

    shuffle_partitions: int | None = Field(default=None, alias="spark.sql.shuffle.partitions", ge=1)


class _Metadata(BaseModel):
    conf: _Conf = _Conf()


def shuffle_partitions(log: str) -> int | None:
    """The number of shuffle partitions that a checkpoint's first micro-batch has fixed; None if the log does not have it.

    Args:
        log: content of ``offsets/N``.
    """
    _, _, rest = log.partition("\n")
    metadata, _, _ = rest.partition("\n")
    try:
        return _Metadata.model_validate_json(metadata).conf.shuffle_partitions
    except ValidationError:
        return None
