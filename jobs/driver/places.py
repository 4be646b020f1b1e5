"""Where an app declares what an error is about, for errors that are only found once it has declared everything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Self

from pyspark.errors import AnalysisException, ParseException

from penstock.jobs.driver import app
from penstock.jobs.driver.errors import OperatorsDiffer
from penstock.jobs.driver.exception_text import message_of, remedy
from penstock.jobs.driver.root_cause import OwnCode, of_exception
from penstock.jobs.errors import BadDeclaration
from penstock.jobs.job import Job, Output
from penstock.jobs.spec import SpecFile
from penstock.jobs.spec.app_module import read
from penstock.jobs.stream.declaration import Frames
from penstock.sizing.errors import PenstockError, Place

_OF_THE_SPEC = "spec."


@dataclass(frozen=True)
class DeclaredPlaces:
    """The places of what an app has declared.

    Args:
        spec: the job's.
        own: the team's files.
        app: the app's file; None if it has none.
        build: of its function ``build``, or of its file.
        declared: what it has declared, as errors call it -> the calls that have led there.
    """

    spec: SpecFile
    own: OwnCode
    app: Path | None
    build: Place | None
    declared: Mapping[str, Frames]

    @classmethod
    def of(cls, job: Job, module: ModuleType | None, spec: SpecFile, app_path: Sequence[str]) -> Self:
        """Of an app that has been built.

        Args:
            job: as the app has declared it.
            module: of the app; None for an app in SQL.
            spec: the job's.
            app_path: folders of the app.
        """
        file = app.source(spec, app_path, module)
        line = module.build.__code__.co_firstlineno if module is not None and hasattr(module.build, "__code__") else None
        build = Place(file=str(file), line=line) if file is not None else None
        return cls(spec, app.own_code(spec, app_path), file, build, job.places)

    @contextmanager
    def located(self, output: Output | None = None) -> Iterator[None]:
        """Context whose errors get the place of what they are about.

        Args:
            output: that is looked at; None: all of the job.

        Raises:
            BadDeclaration: JOB-004, Spark can't analyze an expression.
        """
        written = f'job.write(..., "{next(iter(output.routes))}")' if output is not None else "job.write"
        try:
            yield
        except PenstockError as error:
            for fault in error.errors:
                self._locate(fault, written)
            raise
        except (AnalysisException, ParseException) as error:
            at = of_exception(error, self.own).at or self._declared(written)
            given, need = message_of(error), "what Spark can analyze"
            raise BadDeclaration(path=written, given=given, need=need, fix=remedy(error) or "correct the query", at=at) from error

    def _locate(self, fault: PenstockError, written: str) -> None:
        if fault.at is not None:
            return
        cause = fault.__cause__
        if isinstance(cause, Exception):
            fault.at = of_exception(cause, self.own).at
        if fault.at is None and fault.path.startswith(_OF_THE_SPEC):
            self.spec.document.locate(fault, tuple(fault.path.split(".")))
        elif isinstance(fault, OperatorsDiffer):
            fault.at = self._operators
        fault.at = fault.at or self._declared(fault.path) or self._declared(written) or self.build

    @property
    def _operators(self) -> Place | None:
        line = read(self.app).operators_line if self.app is not None else None
        return Place(file=str(self.app), line=line) if line else self.build

    def _declared(self, path: str) -> Place | None:
        return self.own.last(self.declared.get(path, ()))
