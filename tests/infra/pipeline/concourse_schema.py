"""Concourse's pipeline schema, as far as our pipelines could use it. Unknown fields are rejected, as in `fly`.

Source: atc/config.go, atc/job_config.go, atc/steps.go, atc/task.go and atc/creds/idtoken of concourse/concourse, and its documentation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

# Source: Concourse's documentation, "Config Basics": letters, digits and . _ -, starting with a letter.
Identifier = Annotated[str, Field(pattern=r"^[a-z][a-z0-9._-]*$")]
# A Go duration.
Duration = Annotated[str, Field(pattern=r"^([0-9]+(\.[0-9]+)?(h|m|s|ms))+$")]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class IdTokenConfig(_Part):
    audience: list[str] = []
    subject_scope: Literal["team", "pipeline", "instance", "job"] = "pipeline"
    expires_in: Duration = "1h"
    algorithm: Literal["RS256", "ES256"] = "RS256"


class VarSource(_Part):
    name: Identifier
    type: Literal["idtoken"]
    config: IdTokenConfig


class Resource(_Part):
    name: Identifier
    type: str
    source: dict[str, Any]
    icon: str | None = None
    old_name: Identifier | None = None
    check_every: Duration | Literal["never"] | None = None
    check_timeout: Duration | None = None
    public: bool = False
    tags: list[str] = []
    version: dict[str, str] | None = None
    webhook_token: str | None = None


class ImageResource(_Part):
    type: str
    source: dict[str, Any]
    params: dict[str, Any] = {}
    version: dict[str, str] | None = None


class Run(_Part):
    path: str
    args: list[str] = []
    dir: str | None = None
    user: str | None = None


class Input(_Part):
    name: str
    path: str | None = None
    optional: bool = False


class Output(_Part):
    name: str
    path: str | None = None


class Cache(_Part):
    path: str


class Limits(_Part):
    cpu: int | None = None
    memory: int | str | None = None


class TaskConfig(_Part):
    platform: Literal["linux", "darwin", "windows"]
    run: Run
    image_resource: ImageResource | None = None
    inputs: list[Input] = []
    outputs: list[Output] = []
    caches: list[Cache] = []
    params: dict[str, str | int | bool | None] = {}
    container_limits: Limits | None = None


class _Step(_Part):
    timeout: Duration | None = None
    attempts: Annotated[int, Field(ge=1)] | None = None
    tags: list[str] = []


class Get(_Step):
    get: Identifier
    resource: Identifier | None = None
    passed: list[Identifier] = []
    trigger: bool = False
    params: dict[str, Any] = {}
    version: Literal["latest", "every"] | dict[str, str] = "latest"


class Put(_Step):
    put: Identifier
    resource: Identifier | None = None
    inputs: Literal["all", "detect"] | list[str] = "all"
    params: dict[str, Any] = {}
    get_params: dict[str, Any] = {}
    no_get: bool = False


class Task(_Step):
    task: Identifier
    config: TaskConfig | None = None
    file: str | None = None
    image: str | None = None
    privileged: bool = False
    params: dict[str, Any] = {}
    vars: dict[str, Any] = {}
    input_mapping: dict[str, str] = {}
    output_mapping: dict[str, str] = {}

    @model_validator(mode="after")
    def _one_configuration(self) -> Task:
        if (self.config is None) == (self.file is None):
            raise ValueError("a task has either config or file")
        return self


def _kind(step: Any) -> str | None:
    kinds = [kind for kind in ("get", "put", "task") if kind in step] if isinstance(step, dict) else []
    return kinds[0] if len(kinds) == 1 else None


Step = Annotated[
    Annotated[Get, Tag("get")] | Annotated[Put, Tag("put")] | Annotated[Task, Tag("task")],
    Discriminator(_kind),
]


class Job(_Part):
    name: Identifier
    plan: Annotated[list[Step], Field(min_length=1)]
    old_name: Identifier | None = None
    serial: bool = False
    serial_groups: list[Identifier] = []
    max_in_flight: int | None = None
    interruptible: bool = False
    public: bool = False
    disable_manual_trigger: bool = False

    def gets(self) -> Iterator[Get]:
        return (step for step in self.plan if isinstance(step, Get))

    def tasks(self) -> list[Task]:
        return [step for step in self.plan if isinstance(step, Task)]


class Pipeline(_Part):
    jobs: Annotated[list[Job], Field(min_length=1)]
    resources: list[Resource] = []
    var_sources: list[VarSource] = []

    @model_validator(mode="after")
    def _names_are_told_apart(self) -> Pipeline:
        for names in ([job.name for job in self.jobs], [resource.name for resource in self.resources]):
            if len(set(names)) != len(names):
                raise ValueError(f"a name stands twice among {', '.join(names)}")
        return self

    @model_validator(mode="after")
    def _what_is_named_is_there(self) -> Pipeline:
        jobs, resources = {job.name for job in self.jobs}, {resource.name for resource in self.resources}
        used = {get.resource or get.get for job in self.jobs for get in job.gets()}
        if used != resources:
            raise ValueError(f"{', '.join(sorted(used ^ resources))}: a resource that no job gets, or that is none")
        strange = {name for job in self.jobs for get in job.gets() for name in get.passed} - jobs
        if strange:
            raise ValueError(f"passed names {', '.join(sorted(strange))}, which are no jobs")
        return self

    @model_validator(mode="after")
    def _tasks_have_their_inputs(self) -> Pipeline:
        for job in self.jobs:
            fetched = {get.get for get in job.gets()}
            wanted = {one.name for task in job.tasks() if task.config for one in task.config.inputs if not one.optional}
            if not wanted <= fetched:
                raise ValueError(f"{job.name} has no {', '.join(sorted(wanted - fetched))} for its task")
        return self
