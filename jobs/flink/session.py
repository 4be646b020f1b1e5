"""Converts a Flink session cluster with its jobs to job specs and the session of an environment.

A FlinkDeployment without a job is a session cluster; FlinkSessionJobs name it and run on its TaskManagers. Each of them is converted as a
FlinkDeployment of its own would be, with the pods and the configuration of the cluster, but for the JobManager, which all of them share.

Source: flink-kubernetes-operator, `FlinkSessionJobSpec`, and `FlinkConfigManager.getSessionJobConfig`: a key of the job's configuration
overrides that of the cluster's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from penstock.jobs.document import Document, Path_, parse_text, text_of
from penstock.jobs.flink.conversion import Conversion, conversion
from penstock.jobs.flink.deployment import (
    CONFIGURATION,
    SESSION_JOB,
    SPEC,
    ClusterSpec,
    DeploymentFile,
    Job,
    Metadata,
    Part,
    configuration_of,
    is_session_cluster,
    refuse_unknown_kinds,
    slips,
    understood,
)
from penstock.jobs.flink.errors import FlinkSession
from penstock.sizing.errors import PenstockError, Place, raise_all
from penstock.sizing.flink.parallelism import task_managers
from penstock.sizing.plan import plan
from penstock.sizing.plan.session import SessionPlan, plan_session
from penstock.sizing.planned import Plan

_REPLICAS: Path_ = (*SPEC, "taskManager", "replicas")
_SEPARATOR = re.compile(r"(?:---|\.\.\.)(?=\s|$)")
_APART = ("deploymentName", "flinkConfiguration")
# A name that a job of the cluster has is taken, and one of a session may have 45 characters.
_SUFFIX, _LONGEST = "-session", 45


class SessionJobSpec(Part):
    """The fields of a FlinkSessionJob's ``spec``."""

    deployment_name: str
    job: Job
    flink_configuration: dict[str, Any] | None = None


class FlinkSessionJob(Part):
    """A job of a session cluster."""

    api_version: Literal["flink.apache.org/v1beta1"]
    kind: Literal["FlinkSessionJob"]
    metadata: Metadata
    spec: SessionJobSpec


class FlinkCluster(Part):
    """A session cluster: a FlinkDeployment without a job."""

    api_version: Literal["flink.apache.org/v1beta1"]
    kind: Literal["FlinkDeployment"]
    metadata: Metadata
    spec: ClusterSpec


class SessionConversion(BaseModel):
    """Result of converting a session cluster.

    Args:
        name: of the session: that of the cluster, unless one of the jobs has it.
        jobs: those of the cluster, in the order of their documents.
        task_managers: of the cluster.
        plans: job -> its plan.
        plan: of the session.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    jobs: tuple[Conversion, ...]
    task_managers: int
    plans: dict[str, Plan]
    plan: SessionPlan


def documents(paths: Sequence[Path]) -> list[Document]:
    """The documents of files, each of which may have several, or the items of a List as `kubectl get -o yaml` prints it; the lines of each
    are those of its file.

    Raises:
        PenstockError: SPEC-001 to SPEC-003 and SPEC-011.
    """
    return [document for path in paths for document in _documents(path)]


def _documents(path: Path) -> Iterator[Document]:
    text, parts, begun = text_of(path), [""], 0
    for number, line in enumerate(text.splitlines(keepends=True)):
        if _SEPARATOR.match(line):
            # What follows the separator on its line stays where it is.
            parts.append("\n" * number)
            line, begun = f"   {line[3:]}", number
        parts[-1] += line
    filled = [part for part in parts if any(line.strip() and not line.lstrip().startswith("#") for line in part.splitlines())]
    # A file without any is refused as such.
    for part in filled if begun or len(filled) > 1 else [text]:
        yield from _items(parse_text(part, str(path)))


def _items(document: Document) -> Iterator[Document]:
    """The objects of a List; any other document itself. Source: Kubernetes API Concepts, "Collections"."""
    data = document.data
    items = data.get("items") if isinstance(data, dict) and data.get("kind") == "List" else None
    if not isinstance(items, list) or not items:
        yield document
        return
    for number, item in enumerate(items):
        head = ("items", number)
        places = {path[2:]: place for path, place in document.places.items() if path[:2] == head}
        yield replace(document, data=item, places=places)


def is_session(given: Sequence[Document]) -> bool:
    """Whether documents are to be converted as a session cluster: anything but one FlinkDeployment with a job."""
    return len(given) > 1


def convert_session(given: Sequence[Document]) -> SessionConversion:
    """Converts a session cluster and its jobs.

    Args:
        given: their documents, in any order.

    Raises:
        PenstockError: SPEC-020 for another kind, SPEC-021 if they are not one cluster and its jobs, and as
            `penstock.jobs.flink.conversion.convert`; several are raised as `Faults`.
    """
    raise_all(fault for document in given for fault in _kind_faults(document))
    cluster, jobs = _parted(given)
    raise_all(fault for document in given for fault in slips(document))
    parsed = cluster.parse(FlinkCluster)
    names = [document.parse(FlinkSessionJob) for document in jobs]
    raise_all(_strangers(parsed, jobs, names))
    files = [_file(cluster, parsed, document, job) for document, job in zip(jobs, names, strict=True)]
    return _converted(parsed, files)


def _converted(cluster: FlinkCluster, files: Sequence[DeploymentFile]) -> SessionConversion:
    """Converted, with the overhead that the executors need for the Python workers of all jobs."""
    jobs = _each(files, None)
    plans, session = _planned(jobs)
    needed_mib = session.executor_overhead.needed_mib
    if len(jobs) > 1 and session.pods.executor.overhead_mib < needed_mib:
        jobs = _each(files, needed_mib)
        plans, session = _planned(jobs)
    replicas = (cluster.spec.task_manager.replicas if cluster.spec.task_manager else None) or 0
    flink = [job.flink for job in jobs]
    return SessionConversion(
        name=_name(cluster.metadata.name, [job.name for job in flink]),
        jobs=tuple(jobs),
        task_managers=replicas or task_managers(sum(job.parallelism for job in flink), flink[0].slots),
        plans=plans,
        plan=session,
    )


def _each(files: Sequence[DeploymentFile], overhead_mib: int | None) -> list[Conversion]:
    """The jobs' conversions; a fault of the cluster, which each of them has, is raised once."""
    made: list[Conversion] = []
    faults: dict[tuple[object, ...], PenstockError] = {}
    for file in files:
        try:
            made.append(conversion(file, overhead_mib))
        except PenstockError as error:
            faults.update({(fault.code, fault.at, fault.path): fault for fault in error.errors})
    raise_all(faults.values())
    return made


def _planned(jobs: Sequence[Conversion]) -> tuple[dict[str, Plan], SessionPlan]:
    plans = {job.flink.name: plan(job.targets) for job in jobs}
    return plans, plan_session(plans)


def _kind_faults(document: Document) -> Iterator[PenstockError]:
    try:
        refuse_unknown_kinds(document)
    except PenstockError as error:
        yield from error.errors


def _parted(given: Sequence[Document]) -> tuple[Document, list[Document]]:
    """The cluster, and its jobs."""
    jobs = [document for document in given if document.data["kind"] == SESSION_JOB]
    clusters = [document for document in given if document.data["kind"] != SESSION_JOB]
    need = "one session cluster, a FlinkDeployment without a job, and its FlinkSessionJobs"
    fix = "convert a FlinkDeployment that has its own job by itself, and each session cluster with its jobs"
    strangers = [document for number, document in enumerate(clusters) if number or not is_session_cluster(document)]
    raise_all(document.locate(FlinkSession(need=need, fix=fix), ("kind",)) for document in strangers)
    if not clusters or not jobs:
        missing = "its session cluster" if not clusters else "its FlinkSessionJobs"
        raise given[0].locate(FlinkSession(need=f"{missing} as well", fix="name the files of both"), ("kind",))
    return clusters[0], jobs


def _strangers(cluster: FlinkCluster, documents: Sequence[Document], jobs: Sequence[FlinkSessionJob]) -> Iterator[PenstockError]:
    """The jobs of another cluster, and those whose name an earlier one has."""
    seen: Counter[str] = Counter()
    for document, job in zip(documents, jobs, strict=True):
        if job.spec.deployment_name != cluster.metadata.name:
            fault = FlinkSession(need=f"a job of the session cluster {cluster.metadata.name}", fix="convert it with its own cluster")
            yield document.locate(fault, (*SPEC, "deploymentName"))
        seen[job.metadata.name] += 1
        if seen[job.metadata.name] > 1:
            fault = FlinkSession(need="each job once", fix="remove one of the two")
            yield document.locate(fault, ("metadata", "name"))


def _name(cluster: str, jobs: Sequence[str]) -> str:
    return cluster if cluster not in jobs else f"{cluster[: _LONGEST - len(_SUFFIX)].rstrip('-')}{_SUFFIX}"


def _file(cluster: Document, parsed: FlinkCluster, document: Document, job: FlinkSessionJob) -> DeploymentFile:
    """A job of the cluster as a FlinkDeployment of its own, in which each field has the place where it is written."""
    values, places = _flat(cluster, parsed.spec.flink_configuration)
    own_values, own_places = _flat(document, job.spec.flink_configuration)
    spec = {**_without_replicas(cluster.data["spec"]), **{key: value for key, value in document.data["spec"].items() if key not in _APART}}
    if configuration := {**values, **own_values}:
        spec["flinkConfiguration"] = configuration
    data = {**cluster.data, "metadata": document.data["metadata"], "spec": spec}
    of_cluster = {path: place for path, place in cluster.places.items() if path[:1] != ("metadata",) and path[:3] != _REPLICAS}
    of_job = {path: place for path, place in document.places.items() if path[:1] == ("metadata",) or _is_own(path)}
    merged = Document(file=document.file, text=document.text, data=data, places={**of_cluster, **of_job, **places, **own_places})
    return understood(merged, Path(document.file), parsed.metadata.name)


def _flat(document: Document, given: Mapping[str, Any] | None) -> tuple[dict[str, str], dict[Path_, Place]]:
    """Flink's keys with their values, and the place of each by its path in the merged document."""
    values, paths = configuration_of(document, given)
    return values, {(*CONFIGURATION, key): document.place(path) for key, path in paths.items()}


def _without_replicas(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The cluster's ``spec`` without the number of its TaskManagers, which is no job's parallelism."""
    manager = spec.get("taskManager")
    kept = {key: value for key, value in manager.items() if key != "replicas"} if isinstance(manager, dict) else manager
    return {key: kept if key == "taskManager" else value for key, value in spec.items()}


def _is_own(path: Path_) -> bool:
    return len(path) > 1 and path[:1] == SPEC and path[1] not in _APART
