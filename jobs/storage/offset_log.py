"""What Spark's offset logs say of a checkpoint: ``offsets/N`` has a version, a line of metadata, and a line for each source."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

Offsets = Mapping[str, Mapping[str, int]]
# Source: Spark 4.3.0, SerializedOffset: of a source without an offset.
_NONE = "-"


class FixedSettings(BaseModel):
    """Settings of a checkpoint's first micro-batch, which Spark repeats in each log and applies at each start. It has some more.

    Args:
        shuffle_partitions: number of partitions of the state; None: not known.
        state_provider: class of the state store; None: not known.
        join_format: state format of joins of two streams, whether there are any or not; None: not known.
    """

    model_config = ConfigDict(frozen=True)

    shuffle_partitions: int | None = Field(default=None, alias="spark.sql.shuffle.partitions", ge=1)
    state_provider: str | None = Field(default=None, alias="spark.sql.streaming.stateStore.providerClass")
    join_format: int | None = Field(default=None, alias="spark.sql.streaming.join.stateFormatVersion")

    @property
    def state_backend(self) -> str | None:
        """The state store as a spec calls it; None: not known."""
        return None if self.state_provider is None else "rocksdb" if "RocksDB" in self.state_provider else "memory"


class _Metadata(BaseModel):
    conf: FixedSettings = FixedSettings()


def fixed_settings(log: str) -> FixedSettings:
    """The settings that a checkpoint's first micro-batch has fixed, as far as the log has them.

    Args:
        log: content of ``offsets/N``.
    """
    _, _, rest = log.partition("\n")
    metadata, _, _ = rest.partition("\n")
    try:
        return _Metadata.model_validate_json(metadata).conf
    except ValidationError:
        return FixedSettings()


class OffsetLog(BaseModel):
    """What Spark has planned of a micro-batch, before it runs.

    Args:
        batch_timestamp_ms: the micro-batch's own timestamp, in epoch milliseconds.
        batch_watermark_ms: Spark's watermark, which follows Penstock's; 0 without one.
        settings: of the checkpoint's first micro-batch, or of a later one that has repartitioned the state.
        sources: the end offset of each source, in the order of the query's plan, as its connector writes it; None of one without.
    """

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, validate_by_name=True)

    batch_timestamp_ms: int
    batch_watermark_ms: int
    settings: FixedSettings = Field(default=FixedSettings(), alias="conf")
    sources: tuple[str | None, ...] = ()

    @classmethod
    def of(cls, log: str) -> OffsetLog:
        """From the content of ``offsets/N``.

        Raises:
            ValueError: it is none.
        """
        version, *lines = log.split("\n")
        if version != "v1" or not lines:
            raise ValueError(f"begins with {version[:20]!r} instead of v1 and a line of metadata")
        return cls.model_validate_json(lines[0]).model_copy(update={"sources": tuple(None if one == _NONE else one for one in lines[1:])})


def topics(offset: str | None) -> Offsets:
    """Topic -> partition -> the next offset to read; empty of a source other than Kafka.

    Raises:
        ValueError: it is no JSON.
    """
    document = json.loads(offset) if offset else None
    found = document.items() if isinstance(document, dict) else ()
    return {topic: partitions for topic, partitions in found if isinstance(partitions, dict) and all(map(str.isdigit, partitions))}
