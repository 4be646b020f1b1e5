"""A FlinkDeployment read field by field: what is wrong in it and what there is to say of it gather on the way."""

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
    """The deployment, and what has been found in it so far.

    Args:
        file: the deployment.
    """

    def __init__(self, file: DeploymentFile) -> None:
        self.file = file
        self.spec = file.deployment.spec
        self.settings = file.configuration
        self.places = file.places
        self.notes: list[Note] = []
        # Field of the targets -> where its value stands.
        self.paths: dict[str, Path_] = {}
        self._faults: list[PenstockError] = []

    def read(self, key: str, parse: Callable[[str], Value], default: Value) -> Value:
        """A setting of the configuration, or the default where there is none or it can't be read."""
        if key not in self.places:
            return default
        return self.parsed(self.settings[key], parse, self.places[key], default)

    def parsed(self, text: str, parse: Callable[[str], Value], path: Path_, default: Value) -> Value:
        """A text as Flink reads it; SIZ-055 and the default where it can't."""
        try:
            return parse(text)
        except NotAQuantity as fault:
            self.fault(BadFlinkSetting(need=fault.need, fix=fault.fix), path)
            return default

    def fault(self, error: PenstockError, path: Path_) -> None:
        """Keeps an error at its place."""
        self._faults.append(self.file.document.locate(error, path))

    def note(self, field: str, path: Path_, text: str) -> None:
        """Keeps what there is to say beside a field of the spec; without a path it is about what is not there."""
        given = self.file.document.given(path) if path else ""
        line = self.file.document.place(path).line if path else None
        self.notes.append(Note(field=field, path=dotted(path), line=line, given=given, text=text))

    def raise_faults(self) -> None:
        """Raises what was found, in the order of the document.

        Raises:
            PenstockError: one fault, or all of them as `Faults`.
        """
        raise_all(sorted(self._faults, key=lambda fault: (fault.at.line or 0) if fault.at else 0))

    def origins(self) -> dict[str, Origin]:
        """Field of the targets -> the place of its value."""
        document = self.file.document
        return {field: Origin(at=document.place(path), path=dotted(path), given=document.given(path)) for field, path in self.paths.items()}
