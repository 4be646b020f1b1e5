"""From a job spec to what sizing takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jobs import app_module
from jobs.app_module import STATEFUL_BLOCKS, AppModule
from jobs.document import Path_, dotted
from jobs.errors import AppNotFound
from jobs.spec import Executor, JobSpec, SpecFile
from sizing.targets import DriverTarget, ExecutorTarget, Operators, Origin, Parallelism, Targets

_SPEC: Path_ = ("spec",)
# Field of the targets -> its path in the spec.
_ORIGINS: dict[str, Path_] = {
    "parallelism": ("parallelism",),
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
        PenstockError: SPEC-009, SPEC-010 or SPEC-012 for the app; several come as `Faults`.
    """
    spec = spec_file.job.spec
    module = _app(spec_file, app_path)
    return Targets(
        parallelism=_parallelism(spec, module),
        operators=_operators(spec, module),
        executor=_executor(spec.executor),
        driver=_driver(spec),
        spark_conf={key: _setting(value) for key, value in spec.spark_conf.items()},
        source_topics={source.kafka.topic: source.kafka.partitions for source in spec.sources.values()},
        sink_topics={sink.kafka.topic: sink.kafka.partitions for sink in spec.sinks.values() if sink.kafka},
        notes=_notes(spec_file, module),
        origins=_origins(spec_file),
    )


def _app(spec_file: SpecFile, app_path: Sequence[Path]) -> AppModule:
    try:
        path = app_module.find(spec_file.job.spec.app, spec_file.path.parent, app_path)
    except AppNotFound as error:
        raise spec_file.document.locate(error, (*_SPEC, "app")) from None
    return app_module.read(path)


def _parallelism(spec: JobSpec, module: AppModule) -> Parallelism:
    if module.parallelism is not None:
        return Parallelism(value=module.parallelism, source="code")
    return Parallelism(value=spec.parallelism, source="spec")


def _operators(spec: JobSpec, module: AppModule) -> Operators:
    if module.operator_names:
        return Operators(count=len(module.operator_names), names=module.operator_names, counted_from="OPERATORS of the app")
    if module.operators is not None:
        return Operators(count=module.operators, counted_from="OPERATORS of the app")
    sources, sinks = len(spec.sources), len(spec.sinks)
    counted = f"{sources} sources + {module.stateful_calls} calls of {', '.join(STATEFUL_BLOCKS)} in the app + {sinks} sinks, at least 1"
    return Operators(count=max(1, sources + module.stateful_calls + sinks), counted_from=counted)


def _executor(executor: Executor) -> ExecutorTarget:
    return ExecutorTarget(slots=executor.slots, cpu_millicores=executor.cores, memory_mib=executor.memory, heap_mib=executor.heap)


def _driver(spec: JobSpec) -> DriverTarget:
    # The default of cores is no wish of the user's: a setting of sparkConf may say otherwise.
    cores = spec.driver.cores if "cores" in spec.driver.model_fields_set else None
    return DriverTarget(cpu_millicores=cores, memory_mib=spec.driver.memory, heap_mib=spec.driver.heap)


def _setting(value: str | int | float | bool) -> str:
    """A setting as the text that Spark reads."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _notes(spec_file: SpecFile, module: AppModule) -> tuple[str, ...]:
    if module.parallelism is None:
        return ()
    here = f"PARALLELISM = {module.parallelism} in {module.path}:{module.parallelism_line}"
    place = spec_file.document.place((*_SPEC, "parallelism"))
    return (f"{here} wins over parallelism: {spec_file.job.spec.parallelism} in {place}",)


def _origins(spec_file: SpecFile) -> dict[str, Origin]:
    document = spec_file.document
    settings: dict[str, Path_] = {f"spark_conf.{key}": ("sparkConf", key) for key in spec_file.job.spec.spark_conf}
    paths = {field: (*_SPEC, *path) for field, path in {**_ORIGINS, **settings}.items()}
    return {field: Origin(at=document.place(path), path=dotted(path), given=document.given(path)) for field, path in paths.items()}
