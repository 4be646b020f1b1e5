"""A spec whose job reads what it reads, ends where it is told to, and writes to scratch sinks alone."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from penstock.jobs.spec import NamedConnection, SpecFile, load, named_connections
from penstock.scripts.provisioning.errors import NotPreviewed

# What says how the job is run elsewhere, what belongs to its topics, and what a bounded run contradicts.
_DROPPED = (
    *("local", "topics", "packages", "rewindTo", "restartNonce", "initialSavepointPath", "initialOffsets"),
    *("bounded", "trigger", "progressTimeout"),
)
_ROWS_AT_A_TIME = 10_000


@dataclass(frozen=True)
class Scratch:
    """What a run of a preview reads.

    Args:
        since: where sources begin of which the state says nothing, in ISO 8601.
        savepoint: copy of the state, ``s3a://bucket/folder``; None for a start without.
    """

    since: str
    savepoint: str | None


def outside(spec: SpecFile) -> list[NamedConnection]:
    """What a job calls beside its sources and sinks: databases and endpoints of its tables and of its app."""
    return [one for one in named_connections(spec.job.spec) if one.place[1] in ("connections", "tables")]


def sinks_of(spec: SpecFile) -> dict[str, str]:
    """Sink -> the connection that stands for it."""
    taken = {one.name for one in named_connections(spec.job.spec)}
    free = (name for number in range(10_000) if (name := f"preview-{number}") not in taken)
    return dict(zip(spec.job.spec.sinks, free, strict=False))


def refuse_what_has_no_offsets(spec: SpecFile) -> None:
    """Raises if a job reads anything but topics, or is bounded.

    Raises:
        NotPreviewed: DEP-046.
    """
    job = spec.job.spec
    others = [name for name in job.sources if name not in job.kafka_sources]
    if others or not job.sources:
        raise _refused(spec, f"source {others[0]}" if others else "no source", "sources that read topics alone")
    if job.bounded:
        raise _refused(spec, "bounded: true", "a job without an end; a bounded one can be run again as another job")


def written(spec: SpecFile, scratch: Scratch, folder: Path, beside: Sequence[Path]) -> SpecFile:
    """Writes the spec of a run into a folder, with the files beside the spec that it names.

    Args:
        spec: of the job.
        scratch: what the run reads.
        folder: where it is written.
        beside: folders in which its files are looked up, in this order.

    Raises:
        PenstockError: what is wrong with it.
    """
    document = copy.deepcopy(spec.document.data)
    document["spec"] = {**_without_dropped(document["spec"]), **_of_a_run(spec, scratch)}
    return saved(spec, document, folder, beside)


def saved(spec: SpecFile, document: Mapping[str, Any], folder: Path, beside: Sequence[Path]) -> SpecFile:
    """Saves the document of a spec with the files beside the spec that it names.

    Args:
        spec: of the job.
        document: the changed document.
        folder: where it is saved.
        beside: folders in which its files are looked up, in this order.

    Raises:
        PenstockError: what is wrong with it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), encoding="utf-8")
    _copy_schemas(spec, folder, beside)
    return load(path)


def _copy_schemas(spec: SpecFile, folder: Path, beside: Sequence[Path]) -> None:
    """Copies the Avro schemas that the sources of a spec name; one that is nowhere is left to the spec's own error.

    Args:
        spec: of the job.
        folder: where they are copied to.
        beside: folders in which they are looked up, in this order.
    """
    for source in spec.job.spec.kafka_sources.values():
        if source.avro is not None:
            file = source.avro.schema_file
            found = next((one for one in beside if (one / file).is_file()), None)
            if found is not None:
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(found / file, folder / file)


def _without_dropped(spec: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in spec.items() if name not in _DROPPED}
    if isinstance(kept.get("checkpoint"), dict):
        kept["checkpoint"] = {name: value for name, value in kept["checkpoint"].items() if name != "retention"}
    return kept


def _of_a_run(spec: SpecFile, scratch: Scratch) -> dict[str, Any]:
    start = {} if scratch.savepoint is None else {"initialSavepointPath": scratch.savepoint, "allowNonRestoredState": True}
    return {
        "trigger": "availableNow",
        "bounded": True,
        "upgradeMode": "last-state",
        "sources": dict(_sources(spec, scratch.since)),
        "sinks": {sink: {"webhook": {"connection": name, "rows": _ROWS_AT_A_TIME}} for sink, name in sinks_of(spec).items()},
        **start,
    }


def _sources(spec: SpecFile, since: str) -> Iterator[tuple[str, Any]]:
    for name, source in spec.document.data["spec"]["sources"].items():
        # The consumer group is the job's, whose offsets are not ours to commit; and neither it nor another one says where it starts.
        kafka = {key: value for key, value in source["kafka"].items() if key not in ("commitOffsets", "startingGroup")}
        yield name, {**source, "kafka": {**kafka, "startingOffsets": since}}


def _refused(spec: SpecFile, given: str, need: str) -> NotPreviewed:
    fix = "try the change in a local run: penstock up"
    return NotPreviewed(path=f"job {spec.job.metadata.name}", given=given, need=need, fix=fix)
