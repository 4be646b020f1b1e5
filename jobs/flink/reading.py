"""Reads a FlinkDeployment field by field and collects errors and notes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from penstock.jobs.document import Path_, dotted
from penstock.jobs.flink.deployment import DeploymentFile
from penstock.jobs.flink.spec_text import Note
from penstock.sizing.errors import PenstockError, raise_all
from penstock.sizing.flink.errors import BadFlinkSetting
from penstock.sizing.targets import Origin
from penstock.sizing.units import NotAQuantity

Value = TypeVar("Value")


class Reading:
    """The deployment, and the errors and notes collected so far.

    Args:
        file: the deployment.
    """

    def __init__(self, file: DeploymentFile) -> None:
        self.file = file
        self.spec = file.deployment.spec
        self.settings = file.configuration
        self.places = file.places
        self.notes: list[Note] = []
        # Field of the targets -> path of its value.
        self.paths: dict[str, Path_] = {}
        self._faults: list[PenstockError] = []

    def read(self, key: str, parse: Callable[[str], Value], default: Value) -> Value:
        """A setting of the configuration, or the default if it is missing or invalid."""
        if key not in self.places:
            return default
        return self.parsed(self.settings[key], parse, self.places[key], default)

    def parsed(self, text: str, parse: Callable[[str], Value], path: Path_, default: Value) -> Value:
        """Parses a text as Flink does; adds SIZ-055 and returns the default if it is invalid."""
        try:
            return parse(text)
        except NotAQuantity as fault:
            self.fault(BadFlinkSetting(need=fault.need, fix=fault.fix), path)
            return default

    def fault(self, error: PenstockError, path: Path_) -> None:
        """Adds an error at its place."""
        self._faults.append(self.file.document.locate(error, path))

    def note(self, field: str, path: Path_, text: str) -> None:
        """Adds a note to a field of the spec; without a path it refers to a missing field of the deployment."""
        self.notes.append(noted(self.file, field, path, text))

    def raise_faults(self) -> None:
        """Raises the collected errors in the order of the document.

        Raises:
            PenstockError: a single error, or several as `Faults`.
        """
        raise_all(sorted(self._faults, key=lambda fault: (fault.at.line or 0) if fault.at else 0))

    def origins(self) -> dict[str, Origin]:
        """Field of the targets -> the place of its value."""
        document = self.file.document
        return {field: Origin(at=document.place(path), path=dotted(path), given=document.given(path)) for field, path in self.paths.items()}


def noted(file: DeploymentFile, field: str, path: Path_, text: str, given: str | None = None) -> Note:
    """A note on a field of a deployment.

    Args:
        file: the deployment.
        field: of the spec.
        path: of the deployment's field; empty for one that is missing.
        text: of the note.
        given: the value; None: as the deployment has it.
    """
    if not path:
        return Note(field=field, text=text)
    place = file.document.place(path)
    shown = file.document.given(path) if given is None else given
    other = place.file if place.file != file.document.file else ""
    return Note(field=field, path=dotted(path), line=place.line, given=shown, text=text, file=other)
