"""A requirement that a plan does not meet: a value of the plan, not an exception."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import BaseModel, ConfigDict

from penstock.sizing.errors import Infeasible, Place, raise_all


class Violation(BaseModel):
    """One requirement that a plan does not meet, as in its JSON.

    Args:
        code: code of the corresponding error.
        title: title of that error.
        file: document with the cause; None: none.
        line: counted from 1.
        column: counted from 1.
        path: the field, as a dotted path in the document, or the name of the faulty item.
        given: the current value.
        need: what is required.
        fix: how to fix it.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    code: str
    title: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    path: str = ""
    given: str = ""
    need: str = ""
    fix: str = ""

    @property
    def at(self) -> Place | None:
        """The place of its cause."""
        return None if self.file is None else Place(file=self.file, line=self.line, column=self.column)

    def moved(self, at: Place | None = None, *, path: str | None = None, given: str | None = None) -> Violation:
        """The same violation at another place.

        Args:
            at: the place; None: unchanged.
            path: the field; None: unchanged.
            given: the current value; None: unchanged.
        """
        place = {} if at is None else {"file": at.file, "line": at.line, "column": at.column}
        texts = {name: text for name, text in (("path", path), ("given", given)) if text is not None}
        return self.model_copy(update={**place, **texts})

    def error(self) -> Infeasible:
        """The corresponding error, for a command that ends with it."""
        kind = next(kind for kind in _kinds(Infeasible) if getattr(kind, "code", None) == self.code)
        return kind(path=self.path, given=self.given, need=self.need, fix=self.fix, at=self.at)

    def render(self) -> str:
        """The violation as text."""
        return self.error().render()


def violated(kind: type[Infeasible], *, path: str = "", given: str = "", need: str = "", fix: str = "") -> Violation:
    """A violation of an error class; arguments as in `Violation`."""
    return Violation(code=kind.code, title=kind.title, path=path, given=given, need=need, fix=fix)


def violation_of(error: Infeasible) -> Violation:
    """The violation for an error raised by a calculation."""
    return violated(type(error), path=error.path, given=error.given, need=error.need, fix=error.fix).moved(error.at)


def raise_violations(violations: Iterable[Violation]) -> None:
    """Raises for a plan that is not feasible, where a command cannot continue.

    Raises:
        PenstockError: the violation, or all of them as `Faults`; nothing is raised without violations.
    """
    raise_all(violation.error() for violation in violations)


def _kinds(base: type[Infeasible]) -> Iterator[type[Infeasible]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _kinds(kind)
