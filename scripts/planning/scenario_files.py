"""Files for a placement: scenarios as JSON or YAML, and Kubernetes objects, also from the standard input."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from penstock.jobs.document import Document, dotted
from penstock.scripts.errors import UnreadableScenario
from penstock.scripts.planning.kubernetes_documents import documents, objects
from penstock.scripts.planning.kubernetes_object import KubernetesObject
from penstock.sizing.errors import PenstockError, Place
from penstock.sizing.placement.scenario import Scenario, locate, read

# A scenario with a hundred NodePools and groups takes about 200 kB; a cluster's List with 1,000 pods takes about 10 MB.
MAX_BYTES = 50_000_000
MAX_NODES = 2_000_000
STDIN = Path("-")


def name_of(path: Path) -> str:
    """How a file is named in errors."""
    return "<stdin>" if path == STDIN else str(path)


def read_file(path: Path) -> Scenario | tuple[KubernetesObject, ...]:
    """A file's scenario, or its Kubernetes objects.

    Args:
        path: a JSON or YAML file; ``-``: the standard input.

    Raises:
        PenstockError: USE-010, SPEC-002, SPEC-003, SPEC-011, SIZ-020 to SIZ-024, each with the file and, in YAML, the line.
    """
    text = _text(path)
    file = name_of(path)
    if path.suffix == ".json" or text.lstrip()[:1] in ("{", "["):
        return _of_json(text, file)
    found = list(documents(text, file, max_nodes=MAX_NODES))
    if not found:
        raise _unreadable(file, given="an empty file", need="a scenario or Kubernetes objects")
    if len(found) == 1 and isinstance(found[0].data, dict) and {"nodePools", "scenario"} & found[0].data.keys():
        return _of_yaml(found[0])
    return _objects(found)


def _of_json(text: str, file: str) -> Scenario | tuple[KubernetesObject, ...]:
    data = _json(text, file)
    if isinstance(data, dict) and "kind" in data:
        return _objects(_with_lines(text, file, data))
    try:
        return read(data)
    except PenstockError as error:
        raise locate(error, file) from None


def _with_lines(text: str, file: str, data: Any) -> Sequence[Document]:
    """JSON as a document with lines: nearly all JSON is YAML; where it is not, with the file alone."""
    try:
        return list(documents(text, file, max_nodes=MAX_NODES))
    except PenstockError:
        return [Document(file=file, text=text, data=data, places={})]


def _of_yaml(document: Document) -> Scenario:
    try:
        return read(document.data)
    except PenstockError as error:
        places = {dotted(path): place for path, place in document.places.items()}
        for fault in error.errors:
            fault.at = fault.at or _closest(fault.path, places)
        raise locate(error, document.file) from None


def _closest(path: str, places: dict[str, Place]) -> Place | None:
    """The place of a field, or of its closest parent in the document."""
    while path and path not in places:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return places.get(path)


def _objects(found: Sequence[Document]) -> tuple[KubernetesObject, ...]:
    every = [KubernetesObject(document, root, number) for number, document in enumerate(found, 1) for root in objects(document)]
    for number, document in enumerate(found, 1):
        if not isinstance(document.data, dict):
            raise UnreadableScenario(
                at=document.place(()),
                path=f"document {number}",
                given=document.given(()),
                need="a scenario with nodePools and pods, or Kubernetes objects",
                fix="see docs/placement.md",
            )
    return tuple(every)


def _text(path: Path) -> str:
    """A file as text.

    Raises:
        UnreadableScenario: USE-010.
    """
    file = name_of(path)
    try:
        if path == STDIN:
            content = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with path.open("rb") as opened:
                content = opened.read(MAX_BYTES + 1)
    except OSError as fault:
        raise _unreadable(file, given=fault.strerror or str(fault), need="a readable JSON or YAML file") from None
    except ValueError as fault:
        raise _unreadable(file, given=str(fault), need="a file path") from None
    if len(content) > MAX_BYTES:
        raise _unreadable(file, given="a larger file", need=f"at most {MAX_BYTES // 1_000_000} MB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _unreadable(file, given="bytes that are not valid UTF-8", need="UTF-8 encoded JSON or YAML") from None


def _json(text: str, file: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as fault:
        raise UnreadableScenario(
            at=Place(file=file, line=fault.lineno, column=fault.colno), given=fault.msg, need="JSON", fix="correct the JSON"
        ) from None
    except RecursionError:
        raise _unreadable(file, given="excessive nesting", need="a scenario") from None
    except ValueError as fault:
        raise _unreadable(file, given=str(fault), need="JSON with unique keys, without NaN and Infinity") from None


def _unreadable(file: str, given: str, need: str) -> UnreadableScenario:
    return UnreadableScenario(at=Place(file=file), given=given, need=need, fix="see docs/placement.md")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} is duplicated in an object")
    return mapping


def _no_constant(text: str) -> NoReturn:
    raise ValueError(text)
