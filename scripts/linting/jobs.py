"""A job spec as lint sees it: its plan, its settings and where its pods are scheduled, with their lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from penstock.jobs.document import Document
from penstock.jobs.spec import FromKafka, Source, SpecFile
from penstock.scripts.linting.environment import LintedEnvironment, where
from penstock.scripts.planning.planned_jobs import planned_job
from penstock.sizing.lint.subject import LintedConf, LintedJob, LintedPods, LintedSource, Where
from penstock.sizing.planned import Plan
from penstock.sizing.targets import Targets

_SELECTORS = {
    "driver": ("spark.kubernetes.node.selector.", "spark.kubernetes.driver.node.selector."),
    "executor": ("spark.kubernetes.node.selector.", "spark.kubernetes.executor.node.selector."),
}
_ANNOTATIONS = "spark.kubernetes.{}.annotation."


class JobToLint(NamedTuple):
    """A job with its settings, and its pods that are scheduled elsewhere than the environment says."""

    job: LintedJob
    conf: LintedConf
    pods: tuple[LintedPods, ...]


def job_to_lint(path: Path, app_path: Sequence[Path], environment: LintedEnvironment) -> JobToLint:
    """A job spec.

    Args:
        path: of the spec.
        app_path: folders where the app may lie.
        environment: where its pods go.

    Raises:
        PenstockError: as `penstock.scripts.planning.planned_jobs.planned_job`.
    """
    spec_file, asked, _, planned = planned_job(path, environment.there, app_path, app_required=True)
    name, document = spec_file.job.metadata.name, spec_file.document
    conf = asked.spark_conf if spec_file.job.spec.executor.memory or spec_file.job.spec.executor.heap else _written(spec_file, asked)
    fields = {key: where(document, ("spec", "sparkConf", key)) for key in conf}
    pods = {pods.role: selected(pods, name, conf, fields) for pods in (environment.driver, environment.executor)}
    root = where(document, ("spec", "sparkConf") if conf else ("spec",))
    return JobToLint(
        job=_job(spec_file, asked, planned),
        conf=LintedConf(name=name, conf=conf, effective=planned.spark_conf, executor=pods["executor"], where=root, fields=fields),
        pods=tuple(one for one in pods.values() if one.name.endswith(f"of {name}")),
    )


def selected(pods: LintedPods, name: str, conf: Mapping[str, str], fields: Mapping[str, Where]) -> LintedPods:
    """Pods with the selectors and annotations that an application's settings add; the same pods where they add none.

    Args:
        pods: where they go without.
        name: of the application.
        conf: its settings.
        fields: the places of the settings.
    """
    selectors = _after(conf, _SELECTORS[pods.role])
    annotations = _after(conf, (_ANNOTATIONS.format(pods.role),))
    if not selectors and not annotations:
        return pods
    places = {f"nodeSelector.{label}": fields[key] for label, (key, _) in selectors.items()}
    kept = dict(pods.fields)
    if selectors:
        places["nodeSelector"] = next(iter(places.values()))
        # If taints keep these pods away, the selector is the cause.
        kept.pop("tolerations", None)
    return pods.model_copy(
        update={
            "name": f"{pods.role}s of {name}" if pods.role == "executor" else f"the driver of {name}",
            "node_selector": {**pods.node_selector, **{label: value for label, (_, value) in selectors.items()}},
            "annotations": {**pods.annotations, **{label: value for label, (_, value) in annotations.items()}},
            "fields": {**kept, **places},
        }
    )


def _after(conf: Mapping[str, str], starts: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Suffix after a prefix -> the setting and its value; a later prefix wins."""
    return {key.removeprefix(start): (key, value) for start in starts for key, value in conf.items() if key.startswith(start)}


def _written(spec_file: SpecFile, asked: Targets) -> dict[str, str]:
    """The settings in the spec, without those that follow from its load."""
    return {key: value for key, value in asked.spark_conf.items() if key in spec_file.job.spec.spark_conf}


def _job(spec_file: SpecFile, asked: Targets, planned: Plan) -> LintedJob:
    spec, document = spec_file.job.spec, spec_file.document
    return LintedJob(
        name=spec_file.job.metadata.name,
        plan=planned,
        upgrade_mode=spec.upgrade_mode,
        bounded=spec.trigger == "availableNow",
        has_load=spec.load is not None,
        sources=tuple(
            _source(name, source, topic, planned)
            for name, source in spec.sources.items()
            if isinstance(source, FromKafka)
            for topic in source.kafka.named
        ),
        stateful_operators=len(asked.stateful_operators),
        state_backend=spec.state.backend,
        where=where(document, ("spec",)),
        fields=_fields(document, spec.sources),
    )


def _source(name: str, source: FromKafka, topic: str, planned: Plan) -> LintedSource:
    kafka, time = source.kafka, source.time
    return LintedSource(
        name=name,
        topic=topic,
        partitions=planned.kafka.topics.get(topic) or kafka.partitions or planned.parallelism.value,
        starting_offsets=kafka.starting_offsets,
        has_time=time is not None,
        has_idleness=time is not None and time.idleness is not None,
        out_of_order_ms=time.out_of_orderness + time.allowed_lateness if time is not None and time.kind == "event" else None,
    )


def _fields(document: Document, sources: Mapping[str, Source]) -> dict[str, Where]:
    """The places that the rules need, if they are in the document."""
    paths: dict[str, tuple[str | int, ...]] = {
        "parallelism": ("parallelism",),
        "executor": ("executor",),
        "executor.slots": ("executor", "slots"),
        "executor.cores": ("executor", "cores"),
        "executor.memory": ("executor", "memory"),
        "executor.heap": ("executor", "heap"),
        "driver": ("driver",),
        "driver.memory": ("driver", "memory"),
        "driver.heap": ("driver", "heap"),
        "load": ("load",),
    }
    for name in sources:
        paths[f"sources.{name}"] = ("sources", name, "kafka")
        paths[f"sources.{name}.time"] = ("sources", name, "time")
        paths[f"sources.{name}.outOfOrderness"] = ("sources", name, "time", "outOfOrderness")
        paths[f"sources.{name}.partitions"] = ("sources", name, "kafka", "partitions")
        paths[f"sources.{name}.startingOffsets"] = ("sources", name, "kafka", "startingOffsets")
    return {field: where(document, ("spec", *path)) for field, path in paths.items() if ("spec", *path) in document.places}
