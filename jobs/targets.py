"""Converts a job spec to the targets of sizing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from penstock.jobs.document import Path_, dotted
from penstock.jobs.errors import MissingField
from penstock.jobs.spec import (
    FilesSource,
    JobSpec,
    PlannedFiles,
    Sink,
    SpecFile,
    ToFiles,
    ToKafka,
    ToPostgres,
    ToRedis,
    app_module,
    load_profile,
)
from penstock.jobs.spec.app_module import AppModule
from penstock.jobs.spec.checkpoint_settings import retention_conf
from penstock.jobs.spec.errors import AppNotFound
from penstock.jobs.spec.load_profile import ReadProfile
from penstock.jobs.spec.resources import Executor
from penstock.jobs.spec.resources import Load as AskedLoad
from penstock.jobs.spec.stage_settings import stages_conf
from penstock.sizing.errors import Place
from penstock.sizing.executor_spread import ExecutorSpread
from penstock.sizing.file_splits import FilesInput
from penstock.sizing.load.load import Load
from penstock.sizing.load.measured_job import MeasuredJob
from penstock.sizing.targets import DriverTarget, ExecutorTarget, Operators, Origin, Parallelism, PythonOperators, StageTasks, Targets

_SPEC: Path_ = ("spec",)
# Field of the targets -> its path in the spec.
_ORIGINS: dict[str, Path_] = {
    "parallelism": ("parallelism",),
    "load": ("load",),
    "stages": ("stages",),
    "trigger_s": ("trigger",),
    "executor.slots": ("executor", "slots"),
    "executor.cpu_millicores": ("executor", "cores"),
    "executor.memory_mib": ("executor", "memory"),
    "executor.heap_mib": ("executor", "heap"),
    "executor.storage_mib": ("executor", "ephemeralStorage"),
    "executor.spread": ("executor", "spread"),
    "driver.cpu_millicores": ("driver", "cores"),
    "driver.memory_mib": ("driver", "memory"),
    "driver.heap_mib": ("driver", "heap"),
    "driver.storage_mib": ("driver", "ephemeralStorage"),
}


def targets(
    spec_file: SpecFile,
    app_path: Sequence[Path] = (),
    *,
    app_required: bool = True,
    profile: Path | None = None,
    files: Mapping[str, PlannedFiles] = MappingProxyType({}),
) -> Targets:
    """The targets of sizing, from the spec and the literals of its app.

    Args:
        spec_file: the spec with its document, so that errors have a line.
        app_path: folders to search for the app in addition to those of `app_module.find`.
        app_required: whether an app that is not found is an error. Otherwise its operators are unknown, which a note says.
        profile: a file of `penstock profile`, in place of the load's throughput; of this job as it is.
        files: source of files -> what it reads, in place of the spec's `input`.

    Raises:
        PenstockError: SPEC-009, SPEC-010 or SPEC-012 for the app, SPEC-001 to SPEC-008 and PROF-001 to PROF-003 for a profile; several
            are raised as `Faults`.
    """
    spec = spec_file.job.spec
    module, missing = _app(spec_file, app_path, required=app_required)
    measured = _profile(spec_file, app_path, profile)
    load = _load(spec_file, module, measured)
    return Targets(
        parallelism=_parallelism(spec_file, module),
        operators=_operators(spec, module) if missing is None else _unknown_operators(spec),
        executor=_executor(spec),
        driver=_driver(spec),
        spark_conf={**stages_conf(spec.stages), **retention_conf(spec), **{key: _setting(value) for key, value in spec.spark_conf.items()}},
        files={name: _files(source, files.get(name, source.input)) for name, source in spec.file_sources.items()},
        stages=_stages(spec),
        source_topics=spec_file.job.read_topics(),
        sink_topics=spec_file.job.only_written_topics(),
        load=load,
        trigger_s=_trigger_s(spec),
        limited_reads=all(source.max_offsets_per_trigger is not None for source in spec.kafka_sources.values()),
        stateful_operators=module.stateful_operators,
        python=_python(spec, module),
        queries=module.outputs,
        state_backend=spec.state.backend if "backend" in spec.state.model_fields_set else None,
        state_incremental=spec.state.incremental,
        has_app=missing is None,
        notes=(*(_notes(spec_file, module) if missing is None else _notes_without_app(spec_file, missing)), *measured.notes),
        origins=_origins(spec_file),
    )


def _app(spec_file: SpecFile, app_path: Sequence[Path], *, required: bool) -> tuple[AppModule, AppNotFound | None]:
    """The app; of one that is not found and not required, a module without anything, and why."""
    app = spec_file.job.spec.app
    try:
        path = app_module.find(app, spec_file.path.parent, app_path)
    except AppNotFound as error:
        spec_file.document.locate(error, (*_SPEC, "app"))
        if required:
            raise
        return AppModule(path=Path(app)), error
    return app_module.read(path), None


def _parallelism(spec_file: SpecFile, module: AppModule) -> Parallelism | None:
    spec = spec_file.job.spec
    if module.parallelism is not None:
        at = Place(file=str(module.path), line=module.parallelism_line)
        return Parallelism(value=module.parallelism, source="code", at=at)
    # The app's parallelism is only used without a load; otherwise the load decides.
    if spec.load is not None or spec.parallelism is None:
        return None
    return Parallelism(value=spec.parallelism, source="spec" if spec_file.override is None else "environment")


def _stages(spec: JobSpec) -> StageTasks:
    stages = spec.stages
    return StageTasks(source=_readers(spec), reading=stages.source, stateless=stages.stateless, stateful=stages.stateful)


def _files(source: FilesSource, given: PlannedFiles | None) -> FilesInput | None:
    if given is None:
        return None
    per_batch, splittable = source.max_files_per_trigger, given.splittable
    return FilesInput(files=given.files, size_bytes=given.size, files_per_batch=per_batch, splittable=splittable)


def _readers(spec: JobSpec) -> dict[str, int]:
    """Topic -> minimum number of tasks that read it; several topics of one source share its tasks."""
    asked = spec.stages.source
    if asked is None:
        return {}
    return {topic: -(-asked // len(source.named)) for source in spec.kafka_sources.values() for topic in source.named}


def _trigger_s(spec: JobSpec) -> float | None:
    return None if spec.trigger == "availableNow" else spec.trigger / 1000


def _profile(spec_file: SpecFile, app_path: Sequence[Path], given: Path | None) -> ReadProfile:
    """The profile of the load; none of a job without a load, which needs none."""
    load = spec_file.job.spec.load
    if load is None:
        if given is None:
            return ReadProfile()
        fault = MissingField(path="spec.load", need="load, which a profile gives the throughput of", fix="load: {eventsPerSecond: ...}")
        raise spec_file.document.locate(fault, (*_SPEC, "load"))
    if given is not None:
        return load_profile.given(spec_file, given, app_path)
    return ReadProfile() if load.profile is None else load_profile.read(spec_file, load.profile, app_path)


def _load(spec_file: SpecFile, module: AppModule, profile: ReadProfile) -> Load | None:
    spec, asked = spec_file.job.spec, spec_file.job.spec.load
    if asked is None:
        return None
    state = asked.state
    known = profile.points is not None or profile.measured is not None
    environments = {"retention_h": None if asked.retention is None else asked.retention / 3_600_000, "replication": asked.replication}
    return Load.model_validate(
        {
            "events_per_s": float(asked.events_per_second),
            "event_bytes": asked.event_bytes,
            "events_per_slot_per_s": None if known else asked.events_per_slot,
            "profile": profile.points,
            "measured": profile.measured,
            "profile_changes": profile.changes,
            "cores_per_slot": _cores_per_slot(spec.executor),
            "peak_factor": asked.peak_factor,
            "utilisation": asked.utilisation,
            "restart_s": _restart_s(asked, profile.measured),
            "catch_up_s": asked.catch_up / 1000,
            "backlog_events": asked.backlog,
            "fan_out": asked.fan_out,
            "state_keys": state.keys if state else 0,
            "bytes_per_key": _bytes_per_key(spec_file, profile.measured) if state else 0,
            "stateful_operators": tuple(state.operators if state and state.operators is not None else module.stateful_operators),
            "batch_overhead_s": _batch_overhead_s(asked, profile.measured),
            # Fields missing in the spec stay unset, so that those of the environment apply.
            **{field: value for field, value in environments.items() if value is not None},
        }
    )


def _cores_per_slot(executor: Executor) -> float:
    """One where the spec sets either alone: the other follows from it."""
    if executor.cores is None:
        return 1.0
    return executor.cores / 1000 / (executor.slots or max(1, executor.cores // 1000))


def _restart_s(asked: AskedLoad, measured: MeasuredJob | None) -> float:
    planned = None if measured is None or "restart" in asked.model_fields_set else measured.planned_restart_s
    return asked.restart / 1000 if planned is None else planned


def _batch_overhead_s(asked: AskedLoad, measured: MeasuredJob | None) -> float:
    overhead = None if measured is None or "batch_overhead" in asked.model_fields_set else measured.batch_overhead_s
    return asked.batch_overhead / 1000 if overhead is None else overhead.typical


def _bytes_per_key(spec_file: SpecFile, measured: MeasuredJob | None) -> int:
    """The spec's, or those of the profile."""
    load = spec_file.job.spec.load
    assert load is not None
    assert load.state is not None
    if load.state.bytes_per_key is not None:
        return load.state.bytes_per_key
    if measured is None or measured.bytes_per_key is None:
        fault = MissingField(need="bytesPerKey, or a profile of a job with state", fix="bytesPerKey: N, or penstock profile")
        raise spec_file.document.locate(fault, (*_SPEC, "load", "state", "bytesPerKey"))
    return max(1, math.ceil(measured.bytes_per_key.typical))


def _operators(spec: JobSpec, module: AppModule) -> Operators:
    if module.operator_names:
        return Operators(count=len(module.operator_names), names=module.operator_names, counted_from="OPERATORS of the app")
    if module.operators is not None:
        return Operators(count=module.operators, counted_from="OPERATORS of the app")
    sources, sinks = len(spec.sources), len(spec.sinks)
    called = Counter(module.stateful_calls)
    blocks = ", ".join(f"{count} x {name}" for name, count in called.items()) or "no stateful blocks"
    counted = f"{sources} sources + {blocks} in the app + {sinks} sinks, at least 1"
    return Operators(count=max(1, sources + len(module.stateful_calls) + sinks), counted_from=counted)


def _python(spec: JobSpec, module: AppModule) -> PythonOperators:
    """Those of the app and of its sinks; where several sinks write in Python, one after another uses the same workers."""
    sinks = [name for name, sink in spec.sinks.items() if _writes_in_python(sink)]
    uses = (*module.python_operators, *(("client",) if sinks else ()))
    in_app = ", ".join(f"{count} x {use}" for use, count in Counter(module.python_operators).items()) or "none"
    return PythonOperators.model_validate(
        {"uses": uses, "counted_from": f"{in_app} in the app, {', '.join(sinks) or 'no'} of the sinks in Python"}
    )


def _writes_in_python(sink: Sink) -> bool:
    """Whether tasks write it with a client of their own: other topics are written by Spark's connector, webhooks by the driver."""
    return isinstance(sink, ToFiles | ToPostgres | ToRedis) or (isinstance(sink, ToKafka) and sink.exactly_once)


def _unknown_operators(spec: JobSpec) -> Operators:
    sources, sinks = len(spec.sources), len(spec.sinks)
    counted = f"unknown, because the app was not found: {sources} sources + {sinks} sinks, at least 1"
    return Operators(count=max(1, sources + sinks), counted_from=counted)


def _executor(spec: JobSpec) -> ExecutorTarget:
    executor = spec.executor
    return ExecutorTarget(
        slots=executor.slots,
        cpu_millicores=executor.cores,
        memory_mib=executor.memory,
        heap_mib=executor.heap,
        storage_mib=executor.ephemeral_storage,
        spread=None if executor.spread is None else ExecutorSpread(nodes=executor.spread.nodes, zones=executor.spread.zones),
    )


def _driver(spec: JobSpec) -> DriverTarget:
    # The default of cores is not a request of the user: a setting of sparkConf may override it.
    cores = spec.driver.cores if "cores" in spec.driver.model_fields_set else None
    driver = spec.driver
    return DriverTarget(cpu_millicores=cores, memory_mib=driver.memory, heap_mib=driver.heap, storage_mib=driver.ephemeral_storage)


def _setting(value: str | int | float | bool) -> str:
    """A setting as the text that Spark reads."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _notes(spec_file: SpecFile, module: AppModule) -> tuple[str, ...]:
    # Of one that overrides the load the plan speaks: it knows what the load takes.
    spec, override = spec_file.job.spec, spec_file.override
    place = spec_file.document.place((*_SPEC, "parallelism"))
    given = f"parallelism: {spec.parallelism} in {place if override is None else override.at or 'the environment'}"
    if module.parallelism is not None and spec.load is None:
        return (f"PARALLELISM = {module.parallelism} in {module.path}:{module.parallelism_line} overrides {given}",)
    return () if override is None else (f"{given} overrides {override.replaced} in {place}",)


def _notes_without_app(spec_file: SpecFile, missing: AppNotFound) -> tuple[str, ...]:
    own = _notes(spec_file, AppModule(path=Path(spec_file.job.spec.app)))
    app, place = spec_file.job.spec.app, spec_file.document.place((*_SPEC, "app"))
    counted = "operators are unknown, and the plan counts sources and sinks alone"
    return (*own, f"the app {app} in {place} was not found: {counted}; {missing.fix}")


def _origins(spec_file: SpecFile) -> dict[str, Origin]:
    document = spec_file.document
    stateful: dict[str, Path_] = {f"spark_conf.{key}": ("stages", "stateful") for key in stages_conf(spec_file.job.spec.stages)}
    retention: dict[str, Path_] = {f"spark_conf.{key}": ("checkpoint", "retention") for key in retention_conf(spec_file.job.spec)}
    settings: dict[str, Path_] = {
        **stateful,
        **retention,
        **{f"spark_conf.{key}": ("sparkConf", key) for key in spec_file.job.spec.spark_conf},
    }
    paths = {field: (*_SPEC, *path) for field, path in {**_ORIGINS, **settings}.items()}
    origins = {field: Origin(at=document.place(path), path=dotted(path), given=document.given(path)) for field, path in paths.items()}
    override = spec_file.override
    if override is None or override.at is None:
        return origins
    return {**origins, "parallelism": Origin(at=override.at, path=override.path, given=str(override.value))}
