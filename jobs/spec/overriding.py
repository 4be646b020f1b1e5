"""A spec whose parallelism an environment overrides.

The number is put into the text of the spec, line for line: whatever reads the document, records it or compares it sees one spec, and the
lines in errors stay those of the file.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml

from penstock.jobs.document import Document, parse_text
from penstock.jobs.spec.contradictions import contradictions
from penstock.jobs.spec.errors import ParallelismNotOverridden
from penstock.jobs.spec.job import StreamingJob
from penstock.jobs.spec.reading import ParallelismOverride, SpecFile, load
from penstock.sizing.errors import PenstockError, raise_all

_PARALLELISM, _LOAD = "parallelism", "load"


def overridden(spec: SpecFile, given: ParallelismOverride) -> SpecFile:
    """The spec with another parallelism, in place of its own or of its load.

    Args:
        spec: as read from its file.
        given: the number, and where it stands.

    Raises:
        PenstockError: SPEC-014, the number can't be put into this spec.
    """
    own = spec.job.spec
    if own.executor.memory is None and own.executor.heap is None:
        need = f"a spec with executor.memory or executor.heap: without them the load in {spec.document.place(('spec', _LOAD))} decides both"
        raise _refused(given, need, "set one of them there, or remove parallelism here")
    replaced = _LOAD if own.parallelism is None else f"{_PARALLELISM}: {own.parallelism}"
    document = _with_number(spec.document, given)
    job = document.parse(StreamingJob)
    raise_all(contradictions(document, job))
    return SpecFile(path=spec.path, document=document, job=job, override=given.model_copy(update={"replaced": replaced}))


def load_overridden(path: Path, parallelism: int | None) -> SpecFile:
    """Reads a spec as it runs in an environment.

    Args:
        path: of the spec.
        parallelism: of the environment; None: the spec's own.

    Raises:
        PenstockError: as `load` and `overridden`.
    """
    spec = load(path)
    return spec if parallelism is None else overridden(spec, ParallelismOverride(value=parallelism))


def _with_number(document: Document, given: ParallelismOverride) -> Document:
    wanted = copy.deepcopy(document.data)
    wanted["spec"] = {name: value for name, value in wanted["spec"].items() if name not in (_PARALLELISM, _LOAD)}
    wanted["spec"][_PARALLELISM] = given.value
    try:
        edited = parse_text(_edited(document.text, given.value), document.file)
    except PenstockError:
        edited = None
    # An anchor on the number or in the load, to which other fields refer.
    if edited is None or edited.data != wanted:
        place = document.place(("spec", _PARALLELISM if _PARALLELISM in document.data["spec"] else _LOAD))
        raise _refused(given, f"a field in {place} that other fields do not refer to by an alias", "write the value out there")
    return edited


def _edited(text: str, value: int) -> str:
    spec = next(child for key, child in _entries(yaml.compose(text, Loader=yaml.CSafeLoader)) if key.value == "spec")
    key, node = next((key, child) for key, child in _entries(spec) if key.value in (_PARALLELISM, _LOAD))
    between, was = text[key.end_mark.index : node.start_mark.index], text[node.start_mark.index : node.end_mark.index]
    # A block ends where the next field begins: its lines stay, empty, and so does what is before that field.
    before_next = was.rpartition("\n")[2] if "\n" in was else ""
    rest = "\n" * was.count("\n") + (before_next if before_next.isspace() else "")
    return f"{text[: key.start_mark.index]}{_PARALLELISM}{between}{value}{rest}{text[node.end_mark.index :]}"


def _entries(mapping: Any) -> list[tuple[yaml.ScalarNode, yaml.Node]]:
    entries: list[tuple[yaml.ScalarNode, yaml.Node]] = mapping.value
    return entries


def _refused(given: ParallelismOverride, need: str, fix: str) -> ParallelismNotOverridden:
    return ParallelismNotOverridden(at=given.at, path=given.path, given=str(given.value), need=need, fix=fix)
