"""From a job spec to what sizing takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from penstock.jobs.document import Path_, dotted
from penstock.jobs.errors import AppNotFound
from penstock.jobs.spec import JobSpec, SpecFile, app_module, load_profile
from penstock.jobs.spec.app_module import AppModule
from penstock.jobs.spec.job import Stages
from penstock.jobs.spec.stage_settings import stages_conf
from penstock.sizing.load.load import Load
from penstock.sizing.load.of_targets import memory_for_load
from penstock.sizing.load.parallelism import needed_slots
from penstock.sizing.spark_settings import DEFAULT_HEAP_MIB
from penstock.sizing.targets import DriverTarget, ExecutorTarget, Operators, Origin, Parallelism, StageTasks, Targets

_SPEC: Path_ = ("spec",)
_OVERHEAD = "spark.executor.memoryOverhead"
# Field of the targets -> its path in the spec.
_ORIGINS: dict[str, Path_] = {
    "parallelism": ("parallelism",),
    "load": ("load",),
    "trigger_s": ("trigger",),
    "executor.slots": ("executor", "slots"),
    "executor.cpu_millicores": ("executor", "cores"),
    "executor.memory_mib": ("executor", "memory"),
    "executor.heap_mib": ("executor", "heap"),
    "driver.cpu_millicores": ("driver", "cores"),
    "driver.memory_mib": ("driver", "memory"),
    "driver.heap_mib": ("driver", "heap"),
}


def targets(spec_file: SpecFile, app_path: Sequence[Path] = ()) -> Targets:
    """What sizing takes, from the spec and the literals of its app.

    Args:
        spec_file: the spec with its document, so that errors name a line.
        app_path: folders beside those of `app_module.find` where the app may lie.

    Raises:
        PenstockError: SPEC-009, SPEC-010 or SPEC-012 for the app, SPEC-001 to SPEC-006 for a profile; several come as `Faults`.
    """
    spec = spec_file.job.spec
    module = _app(spec_file, app_path)
    load = _load(spec_file, module)
    asked = _parallelism(spec, module, load)
    found = Targets(
        parallelism=asked.model_copy(update={"value": _slots(spec.stages, asked.value)}),
        operators=_operators(spec, module),
        executor=_executor(spec),
        driver=_driver(spec),
        spark_conf={**stages_conf(spec.stages), **{key: _setting(value) for key, value in spec.spark_conf.items()}},
        stages=StageTasks(source=_readers(spec), stateless=spec.stages.stateless),
        source_topics=spec_file.job.read_topics(),
        sink_topics=spec_file.job.written_topics(),
        load=load,
        trigger_s=_trigger_s(spec),
        stateful_operators=module.stateful_operators,
        state_backend=spec.state.backend if "backend" in spec.state.model_fields_set else None,
        state_incremental=spec.state.incremental,
        notes=(*_notes(spec_file, module, load), *_stage_notes(spec_file, asked)),
        origins=_origins(spec_file),
    )
    return found if spec.executor.memory is not None or spec.executor.heap is not None else _with_memory_for_load(found)


def _app(spec_file: SpecFile, app_path: Sequence[Path]) -> AppModule:
    try:
        path = app_module.find(spec_file.job.spec.app, spec_file.path.parent, app_path)
    except AppNotFound as error:
        raise spec_file.document.locate(error, (*_SPEC, "app")) from None
    return app_module.read(path)


def _parallelism(spec: JobSpec, module: AppModule, load: Load | None) -> Parallelism:
    if module.parallelism is not None:
        return Parallelism(value=module.parallelism, source="code")
    if load is not None:
        return Parallelism(value=needed_slots(load, _trigger_s(spec)).slots, source="load")
    # penstock.jobs.spec has seen to it that one of the two is there.
    assert spec.parallelism is not None
    return Parallelism(value=spec.parallelism, source="spec")


def _slots(stages: Stages, parallelism: int) -> int:
    """Tasks at a time of the stage that has the most."""
    return max(tasks if tasks is not None else parallelism for tasks in (stages.source, stages.stateless, stages.stateful))


def _readers(spec: JobSpec) -> dict[str, int]:
    """Topic -> least tasks that read it; several topics of one source share its tasks."""
    asked = spec.stages.source
    if asked is None:
        return {}
    return {topic: -(-asked // len(source.named)) for source in spec.kafka_sources.values() for topic in source.named}


def _stage_notes(spec_file: SpecFile, parallelism: Parallelism) -> Iterator[str]:
    stages = spec_file.job.spec.stages
    given = {kind: getattr(stages, kind) for kind in type(stages).model_fields}
    if any(tasks is not None for tasks in given.values()):
        told = ", ".join(f"{kind} {tasks or f'{parallelism.value} (the parallelism)'}" for kind, tasks in given.items())
        place = spec_file.document.place((*_SPEC, "stages"))
        yield f"slots for the greatest of the stages, {_slots(stages, parallelism.value)}: {told}, by {place}"


def _trigger_s(spec: JobSpec) -> float | None:
    return None if spec.trigger == "availableNow" else spec.trigger / 1000


def _load(spec_file: SpecFile, module: AppModule) -> Load | None:
    asked = spec_file.job.spec.load
    if asked is None:
        return None
    state = asked.state
    environments = {"retention_h": None if asked.retention is None else asked.retention / 3_600_000, "replication": asked.replication}
    return Load.model_validate(
        {
            "events_per_s": float(asked.events_per_second),
            "event_bytes": asked.event_bytes,
            "events_per_slot_per_s": asked.events_per_slot,
            "profile": None if asked.profile is None else load_profile.read(spec_file, asked.profile),
            "peak_factor": asked.peak_factor,
            "utilisation": asked.utilisation,
            "restart_s": asked.restart / 1000,
            "catch_up_s": asked.catch_up / 1000,
            "backlog_events": asked.backlog,
            "fan_out": asked.fan_out,
            "state_keys": state.keys if state else 0,
            "bytes_per_key": state.bytes_per_key if state else 0,
            "stateful_operators": tuple(state.operators if state and state.operators is not None else module.stateful_operators),
            "batch_overhead_s": asked.batch_overhead / 1000,
            # What the spec leaves out stays unset, so that the environment's own can be put in.
            **{field: value for field, value in environments.items() if value is not None},
        }
    )


def _with_memory_for_load(found: Targets) -> Targets:
    """The targets with the executor that the load needs: heap and overhead in full, so that every way to start it makes the same pod."""
    needed = memory_for_load(found)
    if needed is None:
        return found
    executor = found.executor.model_copy(update={"heap_mib": needed.heap_mib})
    conf = {_OVERHEAD: f"{needed.overhead_mib}m", **found.spark_conf}
    # The overhead has no place of its own in the document: where it is more than Spark takes, the load is at fault.
    origins = {f"spark_conf.{_OVERHEAD}": found.origins["load"], **found.origins}
    return found.model_copy(update={"executor": executor, "spark_conf": conf, "origins": origins})


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


def _executor(spec: JobSpec) -> ExecutorTarget:
    executor = spec.executor
    # Where neither is given the load decides; until then Spark's own default stands.
    heap = executor.heap if executor.heap is not None or executor.memory is not None else DEFAULT_HEAP_MIB
    return ExecutorTarget(slots=executor.slots, cpu_millicores=executor.cores, memory_mib=executor.memory, heap_mib=heap)


def _driver(spec: JobSpec) -> DriverTarget:
    # The default of cores is no wish of the user's: a setting of sparkConf may say otherwise.
    cores = spec.driver.cores if "cores" in spec.driver.model_fields_set else None
    return DriverTarget(cpu_millicores=cores, memory_mib=spec.driver.memory, heap_mib=spec.driver.heap)


def _setting(value: str | int | float | bool) -> str:
    """A setting as the text that Spark reads."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _notes(spec_file: SpecFile, module: AppModule, load: Load | None) -> tuple[str, ...]:
    if module.parallelism is None:
        return ()
    spec = spec_file.job.spec
    here = f"PARALLELISM = {module.parallelism} in {module.path}:{module.parallelism_line}"
    if load is not None:
        place = spec_file.document.place((*_SPEC, "load"))
        return (f"{here} wins over the {needed_slots(load, _trigger_s(spec)).slots} that the load in {place} takes",)
    place = spec_file.document.place((*_SPEC, "parallelism"))
    return (f"{here} wins over parallelism: {spec.parallelism} in {place}",)


def _origins(spec_file: SpecFile) -> dict[str, Origin]:
    document = spec_file.document
    stateful: dict[str, Path_] = {f"spark_conf.{key}": ("stages", "stateful") for key in stages_conf(spec_file.job.spec.stages)}
    settings: dict[str, Path_] = {**stateful, **{f"spark_conf.{key}": ("sparkConf", key) for key in spec_file.job.spec.spark_conf}}
    paths = {field: (*_SPEC, *path) for field, path in {**_ORIGINS, **settings}.items()}
    return {field: Origin(at=document.place(path), path=dotted(path), given=document.given(path)) for field, path in paths.items()}
