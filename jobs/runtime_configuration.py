"""What a driver is started with: the spec, the plan's Spark configuration, and what the environment adds."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class RuntimeConfiguration(BaseModel):
    """One file beside the driver, written by whoever deploys it.

    Args:
        spec: path of the job spec.
        app_path: folders in which the app's module is looked for, the nearest first.
        master: Spark's master, as ``local[4]`` or ``k8s://...``.
        brokers: ``host:port``, several with commas.
        checkpoint: ``s3a://bucket/folder`` of this generation of the job.
        output_bucket: where the spec's file sinks write.
        spark_conf: the plan's Spark configuration with what the environment adds.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    spec: str
    app_path: tuple[str, ...] = ()
    master: str
    brokers: str
    checkpoint: str
    output_bucket: str
    spark_conf: dict[str, str] = Field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> RuntimeConfiguration:
        """Reads the file. Raises pydantic's ValidationError: a program wrote it, so a fault in it is a fault of ours."""
        return cls.model_validate_json(path.read_text(encoding="utf-8"))

    def write(self, path: Path) -> None:
        """Writes the file."""
        path.write_text(self.model_dump_json(by_alias=True, indent=2), encoding="utf-8")
