"""The spec of a measured run: the job with a number of slots, micro-batches of a size, one after another, from the first record on."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.jobs.spec import SpecFile
from penstock.scripts.preview.scratch_spec import saved
from penstock.scripts.profiling.errors import NotProfiled

# What says how the job is run elsewhere, what belongs to its topics, and what the run decides.
_DROPPED = (
    *("load", "parallelism", "stages", "driver", "topics", "packages", "rewindTo", "restartNonce", "initialSavepointPath"),
    *("initialOffsets", "trigger", "progressTimeout", "checkpoint", "quarantine"),
)
# Settings of Spark that follow from the slots.
_OF_SLOTS = ("spark.executor.", "spark.driver.", "spark.kubernetes.", "spark.task.", "spark.sql.shuffle.partitions")
# Spark begins the next micro-batch at once, but for this.
_TRIGGER = "100ms"
_MEMORY = "4g"


def refuse_what_has_no_backlog(spec: SpecFile) -> None:
    """Raises if a job reads anything but topics, or topics by a pattern.

    Raises:
        NotProfiled: PROF-004.
    """
    job = spec.job.spec
    others = [name for name in job.sources if name not in job.kafka_sources]
    if others or not job.sources:
        raise _refused(spec, f"source {others[0]}" if others else "no source", "sources that read topics alone")
    for name, source in job.kafka_sources.items():
        if source.pattern is not None:
            raise _refused(spec, f"source {name}: pattern {source.pattern}", "topics by name")
    if job.bounded:
        raise _refused(spec, "bounded: true", "a job without an end")


def written(spec: SpecFile, slots: int, folder: Path, beside: Sequence[Path]) -> SpecFile:
    """Writes the spec of a run into a folder, with the files beside the spec that it names.

    Args:
        spec: of the job.
        slots: tasks at a time.
        folder: where it is written.
        beside: folders in which its files are looked up, in this order.

    Raises:
        PenstockError: what is wrong with it.
    """
    document = copy.deepcopy(spec.document.data)
    asked = document["spec"]
    kept = {name: value for name, value in asked.items() if name not in _DROPPED}
    memory = {name: value for name, value in asked["executor"].items() if name in ("memory", "heap")} or {"memory": _MEMORY}
    executor = {"slots": slots, "cores": slots, **memory}
    document["spec"] = {
        **kept,
        "parallelism": slots,
        "executor": executor,
        "trigger": _TRIGGER,
        "upgradeMode": "last-state",
        "sources": dict(_sources(asked["sources"])),
        "sparkConf": {key: value for key, value in asked.get("sparkConf", {}).items() if not key.startswith(_OF_SLOTS)},
        "local": {name: value for name, value in asked.get("local", {}).items() if name == "connections"},
    }
    return saved(spec, document, folder, beside)


def _sources(sources: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    # The limit of a micro-batch is the run's. The consumer group is the job's, whose offsets are not ours to commit.
    dropped = ("commitOffsets", "startingGroup", "maxOffsetsPerTrigger", "partitions")
    for name, source in sources.items():
        kafka = {key: value for key, value in source["kafka"].items() if key not in dropped}
        yield name, {**source, "kafka": {**kafka, "startingOffsets": "earliest"}}


def _refused(spec: SpecFile, given: str, need: str) -> NotProfiled:
    return NotProfiled(path=f"job {spec.job.metadata.name}", given=given, need=need, fix="state its throughput: load.eventsPerSlot")
