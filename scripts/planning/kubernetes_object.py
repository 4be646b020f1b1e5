"""One Kubernetes object with the line of each of its fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from penstock.jobs.document import Document, Path_, dotted, shown
from penstock.sizing.errors import DocumentError, PenstockError, raise_all
from penstock.sizing.placement.scenario import findings

Model = TypeVar("Model", bound=BaseModel)


class Fields:
    """The fields of an object of a YAML file, which may have any content.

    Args:
        document: the document that it is in.
        root: its path in the document: it is the document, or an item of a List.
    """

    def __init__(self, document: Document, root: Path_) -> None:
        self.document = document
        self.root = root

    def get(self, *path: str | int) -> Any:
        """The value at a path; None if there is none."""
        value = self.document.data
        for key in (*self.root, *path):
            try:
                value = value[key]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def text(self, *path: str | int) -> str:
        """A text at a path; empty if there is none."""
        value = self.get(*path)
        return value if isinstance(value, str) else ""

    def mapping(self, *path: str | int) -> dict[str, Any]:
        """A mapping at a path; empty if there is none."""
        value = self.get(*path)
        return value if isinstance(value, dict) else {}

    def items(self, *path: str | int) -> list[Any]:
        """A list at a path; empty if there is none."""
        value = self.get(*path)
        return value if isinstance(value, list) else []


class KubernetesObject(Fields):
    """An object of a YAML file.

    Args:
        document: the document that it is in.
        root: its path in the document.
        number: number of the document in its file, counted from 1.
    """

    def __init__(self, document: Document, root: Path_, number: int) -> None:
        super().__init__(document, root)
        self.number = number

    @property
    def kind(self) -> str:
        """Its kind; empty if it has none."""
        return self.text("kind")

    @property
    def name(self) -> str:
        """Its name; empty if it has none."""
        return self.text("metadata", "name")

    @property
    def namespace(self) -> str:
        """Its namespace: ``default`` unless it names one."""
        return self.text("metadata", "namespace") or "default"

    @property
    def controller(self) -> tuple[str, str]:
        """Kind and name of the object that manages it; empty if none does."""
        for owner in self.items("metadata", "ownerReferences"):
            if isinstance(owner, dict) and owner.get("controller"):
                return str(owner.get("kind", "")), str(owner.get("name", ""))
        return "", ""

    def located(self, error: PenstockError, *path: str | int) -> PenstockError:
        """An error with the object, its document and the line of a field."""
        item = f", item {self.root[1] + 1}" if len(self.root) > 1 and isinstance(self.root[1], int) else ""
        label = " ".join(part for part in (self.kind or "object", self.name) if part)
        field = dotted(path)
        error.at = self.document.place((*self.root, *path))
        error.path = f"{label} (document {self.number}{item}){f': {field}' if field else ''}"
        return error

    def refused(self, error: type[DocumentError], *path: str | int, need: str, fix: str) -> PenstockError:
        """An error about a field, with its value unless that is long."""
        value = self.get(*path)
        given = "" if value is None or isinstance(value, dict | list) else shown(value)
        return self.located(error(given=given, need=need, fix=fix), *path)

    def model(self, model: type[Model], data: Any, origin: Callable[[Path_], Path_] = lambda location: location) -> Model:
        """The object, or a part of it, as a model.

        Args:
            model: the model.
            data: what it is read from.
            origin: from a location in `data` to the path in the object.

        Raises:
            PenstockError: SIZ-020 to SIZ-023, each with its line; several are raised as `Faults`.
        """
        try:
            return model.model_validate(data)
        except ValidationError as invalid:
            raise_all(self.located(fault, *self._known(origin(location))) for location, fault in findings(invalid))
            raise

    def _known(self, path: Path_) -> Path_:
        """A location without what only the models know: the branches of unions and the mark of a mapping's key."""
        return tuple(part for part in path if part != "[key]")
