"""The jobs of an environment."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, SerializerFunctionWrapHandler, model_serializer

from penstock.infra.parts.part import Part
from penstock.sizing.targets import MAX_PARALLELISM


class EnvironmentJob(Part):
    """A job of an environment.

    Args:
        spec: path of its spec, relative to the environment file.
        parallelism: in place of the spec's parallelism or load; None: the spec's own.
    """

    spec: str
    parallelism: Annotated[int, Field(ge=1, le=MAX_PARALLELISM)] | None = None

    @model_serializer(mode="wrap")
    def _as_written(self, dumped: SerializerFunctionWrapHandler) -> Any:
        """A path alone where nothing else is set, as most environments have it."""
        return self.spec if self.parallelism is None else dumped(self)


def _written(given: object) -> object:
    if not isinstance(given, str | dict | EnvironmentJob):
        raise ValueError("the path of a spec, or a mapping with spec and parallelism")
    return {"spec": given} if isinstance(given, str) else given


# A path, or a mapping.
JobEntry = Annotated[EnvironmentJob, BeforeValidator(_written)]
