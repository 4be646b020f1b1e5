"""A FlinkDeployment (flink.apache.org/v1beta1), read in the same way as the operator does.

Only the fields that affect size and upgrades are interpreted; `penstock.jobs.flink.leftovers` lists all others.

Source: flink-kubernetes-operator's ``api/spec`` classes, ``FlinkConfigBuilder`` and ``DefaultValidator``.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from penstock.jobs.document import Document, Path_, dotted
from penstock.jobs.errors import Contradiction, UnknownField
from penstock.jobs.flink.errors import FlinkSession, NotAFlinkDeployment
from penstock.jobs.spec import Name
from penstock.sizing.errors import PenstockError, raise_all
from penstock.sizing.targets import MAX_PARALLELISM

API_VERSION = "flink.apache.org/v1beta1"
SESSION_JOB = "FlinkSessionJob"
_TOGETHER = "name the files of both: --from-flink CLUSTER.yaml JOB.yaml ...; or one file with all of them"
SPEC: Path_ = ("spec",)
CONFIGURATION: Path_ = (*SPEC, "flinkConfiguration")

# Fields of operators up to 1.15 that are not in the models below, by their path.
_OTHER_FIELDS: dict[Path_, tuple[str, ...]] = {
    (): ("status",),
    SPEC: ("image", "imagePullPolicy", "serviceAccount", "ingress", "podTemplate", "logConfiguration", "restartNonce"),
    (*SPEC, "job"): (
        "savepointTriggerNonce", "checkpointTriggerNonce", "initialSavepointPath", "allowNonRestoredState", "savepointRedeployNonce",
        "autoscalerResetNonce",
    ),
    (*SPEC, "jobManager"): ("podTemplate",),
    (*SPEC, "taskManager"): ("podTemplate",),
    (*SPEC, "jobManager", "resource"): ("ephemeralStorage",),
    (*SPEC, "taskManager", "resource"): ("ephemeralStorage",),
    (*SPEC, "jobManager", "resources"): ("claims",),
    (*SPEC, "taskManager", "resources"): ("claims",),
}  # fmt: skip


class Part(BaseModel):
    """A mapping of a Flink resource, read as the operator does."""

    # Unknown fields are handled by `slips` and the leftovers: a newer operator may have fields that are unknown here.
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", alias_generator=to_camel, validate_by_name=False)


class Metadata(Part):
    """Metadata of the resource."""

    name: Name


class Resource(Part):
    """Resources of a pod: memory as text, CPU in cores."""

    memory: str | None = None
    cpu: Annotated[float, Field(gt=0, le=1_000, allow_inf_nan=False)] | None = None


class ResourceRequirements(Part):
    """Resources of a pod in Kubernetes' format, which take precedence over `Resource` in newer operators."""

    requests: dict[str, str | int | float] | None = None
    limits: dict[str, str | int | float] | None = None


class JobManager(Part):
    """Settings of the JobManagers."""

    resource: Resource | None = None
    resources: ResourceRequirements | None = None
    replicas: Annotated[int, Field(ge=1, le=100)] | None = None


class TaskManager(Part):
    """Settings of the TaskManagers; `replicas` overrides the job's parallelism."""

    resource: Resource | None = None
    resources: ResourceRequirements | None = None
    replicas: Annotated[int, Field(ge=1, le=MAX_PARALLELISM)] | None = None


class Job(Part):
    """The job of an application cluster."""

    jar_uri: Annotated[str | None, Field(alias="jarURI")] = None
    entry_class: str | None = None
    args: list[Any] | None = None
    parallelism: Annotated[int, Field(ge=0, le=MAX_PARALLELISM)] = 0
    upgrade_mode: Literal["last-state", "savepoint", "stateless"] = "stateless"
    state: Literal["running", "suspended"] = "running"


class ClusterSpec(Part):
    """The fields of ``spec`` without a job: a session cluster."""

    flink_version: Annotated[str, Field(pattern=r"^v[0-9]{1,3}_[0-9]{1,3}$")]
    mode: Literal["native", "standalone"] = "native"
    flink_configuration: dict[str, Any] | None = None
    job_manager: JobManager | None = None
    task_manager: TaskManager | None = None


class Spec(ClusterSpec):
    """The fields of ``spec``."""

    job: Job


class FlinkDeployment(Part):
    """The whole document."""

    api_version: Literal["flink.apache.org/v1beta1"]
    kind: Literal["FlinkDeployment"]
    metadata: Metadata
    spec: Spec


class DeploymentFile(BaseModel):
    """A FlinkDeployment with the document that it was read from.

    Args:
        path: path given by the user.
        document: document with the line of each field.
        deployment: its fields.
        configuration: Flink's keys, nested ones joined with dots, and their values as Flink reads them.
        places: place of each of these keys.
        cluster: the session cluster of its job; None: it has its own.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    path: Path
    document: Document
    deployment: FlinkDeployment
    configuration: dict[str, str]
    places: dict[str, Path_]
    cluster: str | None = None


def understand(document: Document, path: Path) -> DeploymentFile:
    """Parses a document as a FlinkDeployment.

    Raises:
        PenstockError: SPEC-004 to SPEC-008 and SPEC-011 as for any document, SPEC-020 for another kind, SPEC-021 for a session; several
            are raised as `Faults`.
    """
    refuse_other_kinds(document)
    raise_all(slips(document))
    return understood(document, path)


def understood(document: Document, path: Path, cluster: str | None = None) -> DeploymentFile:
    """Parses a document that is known to be a FlinkDeployment with a job.

    Args:
        document: the document.
        path: of its file.
        cluster: see `DeploymentFile`.

    Raises:
        PenstockError: SPEC-004 to SPEC-008; several are raised as `Faults`.
    """
    deployment = document.parse(FlinkDeployment)
    configuration, places = configuration_of(document, deployment.spec.flink_configuration)
    return DeploymentFile(path=path, document=document, deployment=deployment, configuration=configuration, places=places, cluster=cluster)


def configuration_of(document: Document, given: Mapping[str, Any] | None) -> tuple[dict[str, str], dict[str, Path_]]:
    """Flink's keys of a document, and the place of each.

    Args:
        document: the document.
        given: its ``flinkConfiguration``.

    Raises:
        PenstockError: SPEC-008 for a key that is there twice; several are raised as `Faults`.
    """
    configuration: dict[str, str] = {}
    places: dict[str, Path_] = {}
    faults: list[PenstockError] = []
    for key, text, place in _flattened(given or {}, (), CONFIGURATION):
        if key in places:
            fault = Contradiction(need=f"the key {key} once; it is already defined as {dotted(places[key])}", fix="remove one of them")
            faults.append(document.locate(fault, place))
        configuration[key], places[key] = text, place
    raise_all(faults)
    return configuration, places


def known_fields(path: Path_) -> tuple[str, ...]:
    """The operator's fields at a path for which this module has all of them; empty elsewhere."""
    models: dict[Path_, type[BaseModel]] = {
        (): FlinkDeployment,
        SPEC: Spec,
        (*SPEC, "job"): Job,
        (*SPEC, "jobManager"): JobManager,
        (*SPEC, "taskManager"): TaskManager,
        **{(*SPEC, kind, "resource"): Resource for kind in ("jobManager", "taskManager")},
        **{(*SPEC, kind, "resources"): ResourceRequirements for kind in ("jobManager", "taskManager")},
    }
    if path not in models:
        return ()
    return (*(field.alias or name for name, field in models[path].model_fields.items()), *_OTHER_FIELDS[path])


def understood_places() -> tuple[Path_, ...]:
    """The mappings whose fields are listed by `known_fields`."""
    return tuple(_OTHER_FIELDS)


def mapping_at(document: Document, path: Path_) -> Mapping[str, Any]:
    """The mapping at a path; empty if it does not exist."""
    value = document.data
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def refuse_other_kinds(document: Document) -> None:
    """Refuses what is no FlinkDeployment with a job: SPEC-020 and SPEC-021."""
    data = document.data if isinstance(document.data, dict) else {}
    if data.get("kind") == SESSION_JOB:
        need = "its session cluster as well: a FlinkSessionJob runs on the TaskManagers of that"
        raise document.locate(FlinkSession(need=need, fix=_TOGETHER), ("kind",))
    refuse_unknown_kinds(document)
    if is_session_cluster(document):
        need = "spec.job, or the FlinkSessionJobs of this session cluster as well"
        raise document.locate(FlinkSession(need=need, fix=_TOGETHER), ("spec", "job"))


def refuse_unknown_kinds(document: Document) -> None:
    """Refuses what is neither a FlinkDeployment nor a FlinkSessionJob: SPEC-020."""
    data = document.data if isinstance(document.data, dict) else {}
    kind = data.get("kind")
    if kind not in ("FlinkDeployment", SESSION_JOB):
        fix = "use its template's spec as a FlinkDeployment" if kind == "FlinkBlueGreenDeployment" else "specify the FlinkDeployment's file"
        raise document.locate(NotAFlinkDeployment(need="kind: FlinkDeployment", fix=fix), ("kind",))
    if data.get("apiVersion") != API_VERSION:
        raise document.locate(NotAFlinkDeployment(need=f"apiVersion: {API_VERSION}", fix="use the operator's apiVersion"), ("apiVersion",))


def is_session_cluster(document: Document) -> bool:
    """Whether a FlinkDeployment has no job of its own."""
    spec = document.data.get("spec")
    return document.data.get("kind") == "FlinkDeployment" and isinstance(spec, dict) and spec.get("job") is None


def slips(document: Document) -> list[PenstockError]:
    """Probable typos of the operator's fields, which would be ignored silently otherwise."""
    return [
        document.locate(UnknownField(need=f"one of {', '.join(known)}", fix=f"did you mean {close}?"), (*path, name))
        for path in understood_places()
        for known in [_known_in(document, path)]
        for name in mapping_at(document, path)
        if name not in known and (close := _closest(name, known))
    ]


def _known_in(document: Document, path: Path_) -> tuple[str, ...]:
    of_session = path == SPEC and document.data.get("kind") == SESSION_JOB
    return (*known_fields(path), *(("deploymentName",) if of_session else ()))


def _closest(name: str, known: tuple[str, ...]) -> str | None:
    plain = {candidate.lower(): candidate for candidate in known}
    matches = difflib.get_close_matches(name.lower().replace("_", "").replace("-", ""), list(plain), n=1, cutoff=0.85)
    return plain[matches[0]] if matches else None


def _flattened(values: Mapping[str, Any], prefix: tuple[str, ...], path: Path_) -> Iterator[tuple[str, str, Path_]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flattened(value, (*prefix, name), (*path, name))
        else:
            yield ".".join((*prefix, name)), _text(value), (*path, name)


def _text(value: object) -> str:
    """A value as the operator passes it to Flink."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    try:
        return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)
    except ValueError:
        # Python does not format numbers of more than 4300 digits, and Flink does not parse them.
        return "a number too long to display"
