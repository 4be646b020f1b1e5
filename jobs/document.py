"""A YAML document with the line of each of its fields.

A spec or an environment is read in two steps: `read` returns the text as plain data, with the place of every key and value;
`Document.parse` validates the data with a pydantic model and turns each of pydantic's findings into an error with its line. All errors
of a document are reported at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
import yaml.reader
from pydantic import BaseModel, BeforeValidator, PlainSerializer, ValidationError
from pydantic_core import ErrorDetails

from penstock.jobs import findings
from penstock.jobs.errors import (
    BadQuantity,
    BadValue,
    BrokenYaml,
    DocumentTooLarge,
    DuplicateKey,
    MissingField,
    UnknownField,
    UnreadableDocument,
)
from penstock.sizing.errors import PenstockError, Place, raise_all
from penstock.sizing.units import NotAQuantity

Path_ = tuple[str | int, ...]
Model = TypeVar("Model", bound=BaseModel)

# A spec with a hundred sources has some 2,000 nodes. An alias counts as all the nodes that it refers to, which stops a "billion laughs"
# document before it is expanded.
MAX_NODES = 20_000
MAX_BYTES = 1_000_000
MAX_DEPTH = 50
# The tag of a plain ``<<`` as a key. Source: https://yaml.org/type/merge.html, for YAML 1.1.
_MERGE = "tag:yaml.org,2002:merge"


@dataclass(frozen=True)
class Document:
    """Plain data with the place of each field.

    Args:
        file: path given by the user.
        text: text of the file.
        data: mappings, lists and scalars, as resolved by YAML 1.1's safe schema; timestamps stay text.
        places: path -> place of its value; an entry of a mapping has the place of its key.
    """

    file: str
    text: str
    data: Any
    places: dict[Path_, Place]

    def place(self, path: Path_) -> Place:
        """The place of a field, or of its closest existing parent."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.places:
                return self.places[path[:end]]
        return Place(file=self.file)

    def given(self, path: Path_) -> str:
        """The value at a path as a person would write it; empty if it does not exist."""
        value = self.data
        for key in path:
            try:
                value = value[key]
            except (KeyError, IndexError, TypeError):
                return ""
        return shown(value)

    def parse(self, model: type[Model]) -> Model:
        """The document as a model.

        Raises:
            PenstockError: SPEC-004 to SPEC-008, or the errors of the model's validators; several are raised as `Faults`.
        """
        try:
            return model.model_validate(self.data, strict=True)
        except ValidationError as error:
            places: dict[Path_, list[ErrorDetails]] = {}
            for detail in error.errors(include_url=False):
                places.setdefault(self._path_in_document(tuple(detail["loc"])), []).append(detail)
        faults = [fault for path, details in places.items() for fault in self._faults(path, details, model)]
        raise_all(sorted(faults, key=lambda fault: (fault.at.line or 0, fault.at.column or 0) if fault.at else (0, 0)))
        raise AssertionError("a validation error without a finding")

    def locate(self, error: PenstockError, path: Path_) -> PenstockError:
        """The error with the place of a field, its dotted path and its value filled in if they are missing."""
        error.at = error.at or self.place(path)
        error.path = error.path or dotted(path)
        error.given = error.given or self.given(path)
        return error

    def _faults(self, path: Path_, details: list[ErrorDetails], model: type[BaseModel]) -> list[PenstockError]:
        """The errors for pydantic's findings at one path; the branches of a union that none matched are one error."""
        own = [detail.get("ctx", {}).get("error") for detail in details]
        quantities = [BadQuantity(need=error.need, fix=error.fix) for error in own if isinstance(error, NotAQuantity)]
        located = [error for error in own if isinstance(error, PenstockError)] or quantities[:1]
        return [self.locate(error, path) for error in located or [self._fault(path, details, model)]]

    def _fault(self, path: Path_, details: list[ErrorDetails], model: type[BaseModel]) -> PenstockError:
        kind, location = details[0]["type"], details[0]["loc"]
        if kind == "extra_forbidden":
            return UnknownField(**findings.unknown_field(model, location)._asdict())
        if kind == "missing":
            return MissingField(path=dotted(path), need=f"{path[-1]}", fix="add it")
        key = shown(path[-1]) if location[-1:] == ("[key]",) else ""
        return BadValue(given=key, **findings.bad_value(details, model)._asdict())

    def _path_in_document(self, location: Path_) -> Path_:
        """Pydantic's location without the elements for a union's branch or a mapping's key, which are not in the document."""
        path: Path_ = ()
        location = location[:-1] if location and location[-1] == "[key]" else location
        value = self.data
        for index, key in enumerate(location):
            known = (isinstance(value, dict) and key in value) or (isinstance(value, list) and isinstance(key, int) and key < len(value))
            if known:
                path, value = (*path, key), value[key]
            elif index == len(location) - 1 and isinstance(value, dict):
                path = (*path, key)
        return path


def _of_json(value: object) -> object:
    return parse_text(value["text"], value["file"]) if isinstance(value, dict) else value


# A document as part of a model's JSON: its name and its text, from which it is read again.
DumpedDocument = Annotated[
    Document,
    BeforeValidator(_of_json),
    PlainSerializer(lambda document: {"file": document.file, "text": document.text}),
]


def read(path: Path) -> Document:
    """Reads a YAML file.

    Raises:
        PenstockError: SPEC-001 for a file that can't be read, SPEC-002 for invalid YAML, SPEC-003 for duplicate keys, SPEC-011 for a
            document beyond `MAX_BYTES`, `MAX_NODES` or `MAX_DEPTH`.
    """
    return parse_text(text_of(path), str(path))


def parse_text(text: str, file: str, *, max_nodes: int = MAX_NODES) -> Document:
    """Reads YAML from a text; `file` is its name in errors. Raises the errors of `read`, beyond `max_nodes` instead of `MAX_NODES`."""
    try:
        _refuse_depth(text, file)
        root = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = Place(file=file, line=mark.line + 1, column=mark.column + 1) if mark else Place(file=file, line=1)
        raise BrokenYaml(at=at, need=f"YAML: {error.problem or error.context}", fix="correct this line or the one above it") from None
    except yaml.reader.ReaderError as error:
        # The position counts bytes of UTF-8.
        at = Place(file=file, line=text.encode("utf-8", "surrogatepass").count(b"\n", 0, error.position) + 1)
        raise BrokenYaml(at=at, given=f"the character U+{error.character:04X}", need="printable text", fix="remove it") from None
    except yaml.YAMLError as error:
        raise BrokenYaml(at=Place(file=file, line=1), need=f"YAML: {error}", fix="correct the document") from None
    if root is None:
        raise BrokenYaml(at=Place(file=file, line=1), given="an empty document", need="a mapping", fix="add content")
    reader = _Reader(file, max_nodes)
    data = reader.value(root, ())
    raise_all(reader.faults)
    return Document(file=file, text=text, data=data, places=reader.places)


def _refuse_depth(text: str, file: str) -> None:
    """Checks `MAX_DEPTH` before the document is composed: PyYAML composes by recursion in C, where a deep document crashes the process.

    Raises:
        DocumentTooLarge: SPEC-011.
    """
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH + 1:
            mark = event.start_mark
            at = Place(file=file, line=mark.line + 1, column=mark.column + 1) if mark else Place(file=file, line=1)
            raise DocumentTooLarge(at=at, need=f"values nested at most {MAX_DEPTH} deep", fix="reduce the nesting")


def dotted(path: Path_) -> str:
    """A path as users write it: ``spec.sources.a.kafka``, ``spec.queries[0]``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def shown(value: object) -> str:
    """A value as shown in errors: text in quotes, long values truncated."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except ValueError:
        # Python does not format numbers of more than 4300 digits.
        return "a number too long to display"
    return text if len(text) <= 120 else f"{text[:117]}..."


def text_of(path: Path) -> str:
    """The text of a YAML file, with or without a byte order mark.

    Raises:
        PenstockError: SPEC-001 for a file that can't be read, SPEC-011 for one beyond `MAX_BYTES`.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except IsADirectoryError:
        raise UnreadableDocument(at=Place(file=str(path)), given="a directory", need="a YAML file", fix="specify a file in it") from None
    except OSError as error:
        raise UnreadableDocument(at=Place(file=str(path)), need=error.strerror or "a readable file", fix="check the path") from None
    if len(raw) > MAX_BYTES:
        raise DocumentTooLarge(at=Place(file=str(path)), need=f"at most {MAX_BYTES} bytes", fix="split the document")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UnreadableDocument(at=Place(file=str(path), line=line), need="UTF-8", fix="save the file as UTF-8") from None


class _Reader:
    """Converts YAML nodes to plain data and records the place of each."""

    def __init__(self, file: str, max_nodes: int) -> None:
        self.file = file
        self._max_nodes = max_nodes
        self.places: dict[Path_, Place] = {}
        self.faults: list[PenstockError] = []
        self._nodes = 0
        self._scalars = yaml.SafeLoader("")

    def value(self, node: yaml.Node, path: Path_) -> Any:
        self._count(node, path)
        self.places.setdefault(path, self._place(node))
        if isinstance(node, yaml.MappingNode):
            return {key: self.value(child, (*path, key)) for key, child in self._entries(node, path)}
        if isinstance(node, yaml.SequenceNode):
            return [self.value(child, (*path, index)) for index, child in enumerate(node.value)]
        return self._scalar(node, path)

    def _count(self, node: yaml.Node, path: Path_) -> None:
        self._nodes += 1
        if self._nodes > self._max_nodes or len(path) > MAX_DEPTH:
            need = f"at most {self._max_nodes} values, nested at most {MAX_DEPTH} deep, with aliases expanded"
            raise DocumentTooLarge(at=self._place(node), need=need, fix="remove aliases, or split the document")

    def _entries(self, node: yaml.MappingNode, path: Path_) -> Iterator[tuple[str, yaml.Node]]:
        seen: dict[str, int] = {}
        for key_node, child in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self.faults.append(BrokenYaml(at=self._place(key_node), path=dotted(path), need="a string as key", fix="use a string"))
                continue
            key = str(key_node.value)
            place = self._place(key_node)
            if key_node.tag == _MERGE:
                need = "fields written out: a merge (<<) is not part of YAML 1.2, and is not applied"
                fix = "copy the fields that it would merge; an alias as a value (key: *name) is allowed"
                self.faults.append(UnknownField(at=place, path=dotted((*path, key)), given="a YAML merge", need=need, fix=fix))
                continue
            if key in seen:
                first = f"{dotted((*path, key))} once; it is already defined on line {seen[key]}"
                self.faults.append(DuplicateKey(at=place, path=dotted((*path, key)), need=first, fix="remove one of them"))
                continue
            seen[key] = place.line or 0
            self.places[(*path, key)] = place
            yield key, child

    def _scalar(self, node: yaml.Node, path: Path_) -> Any:
        if node.tag == "tag:yaml.org,2002:timestamp":
            return node.value
        try:
            return self._scalars.construct_object(node, deep=True)
        except (yaml.YAMLError, ValueError, LookupError, OverflowError):
            # PyYAML's own constructors fail in all these ways: !!bool maybe, !!int "", 1:20:20:...:20.5
            fault = BadValue(path=dotted(path), given=shown(node.value), need="a string, number, boolean or null", fix="put it in quotes")
            fault.at = self._place(node)
            self.faults.append(fault)
            return None

    def _place(self, node: yaml.Node) -> Place:
        return Place(file=self.file, line=node.start_mark.line + 1, column=node.start_mark.column + 1)
