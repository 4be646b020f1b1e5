"""YAML files of Kubernetes objects: several documents, each an object or a List."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import yaml

from penstock.jobs.document import MAX_NODES, Document, Path_, parse_text
from penstock.jobs.errors import BrokenYaml
from penstock.sizing.errors import Place


def documents(text: str, file: str, *, max_nodes: int = MAX_NODES) -> Iterator[Document]:
    """The documents of a text, each with its line numbers in the file; empty ones are left out.

    Args:
        text: the YAML.
        file: its name in errors.
        max_nodes: most values of one document.

    Raises:
        PenstockError: SPEC-002 for invalid YAML, SPEC-003 for duplicate keys, SPEC-011 beyond the limits of a document.
    """
    lines = text.splitlines(keepends=True)
    for start, end in pairwise([*_starts(text, file), len(lines)]):
        own = "".join(lines[start:end])
        if any(line.split("#")[0].strip(" \t\r\n-.") for line in lines[start:end]):
            yield parse_text("\n" * start + own, file, max_nodes=max_nodes)


def objects(document: Document) -> Iterator[Path_]:
    """The places of the objects of a document: it is one object, or a List."""
    data = document.data
    if isinstance(data, dict) and str(data.get("kind", "")).endswith("List") and isinstance(data.get("items"), list):
        yield from (("items", index) for index, item in enumerate(data["items"]) if isinstance(item, dict))
    elif isinstance(data, dict):
        yield ()


def _starts(text: str, file: str) -> list[int]:
    """The lines on which the documents of a text begin, counted from 0."""
    try:
        marks = [event.start_mark for event in yaml.parse(text, Loader=yaml.CSafeLoader) if isinstance(event, yaml.DocumentStartEvent)]
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        need = f"YAML: {error.problem or error.context}"
        fix = "correct this line or the one above it; render Helm templates first"
        raise BrokenYaml(at=Place(file=file, line=line), need=need, fix=fix) from None
    except yaml.YAMLError as error:
        raise BrokenYaml(at=Place(file=file, line=1), need=f"YAML: {error}", fix="correct the document") from None
    lines = [mark.line for mark in marks if mark is not None]
    # Text before the first document is comments.
    return [0, *lines[1:]] if lines else []
