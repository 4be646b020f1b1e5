"""What a plan does not meet: a value of the plan, not an exception."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import BaseModel, ConfigDict

from penstock.sizing.errors import Infeasible, Place, raise_all


class Violation(BaseModel):
    """One thing that a plan does not meet, as its JSON shows it.

    Args:
        code: of the error that it is when it is raised.
        title: of that error.
        file: the document where the cause stands; None: it stands in none.
        line: counted from 1.
        column: counted from 1.
        path: the field, as a dotted path in the document, or the name of what is at fault.
        given: what stands there.
        need: what is required.
        fix: what to do.
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
        """Where its cause stands."""
        return None if self.file is None else Place(file=self.file, line=self.line, column=self.column)

    def moved(self, at: Place | None = None, *, path: str | None = None, given: str | None = None) -> Violation:
        """The same violation at another place.

        Args:
            at: the place; None: it stays.
            path: the field; None: it stays.
            given: what stands there; None: it stays.
        """
        there = {} if at is None else {"file": at.file, "line": at.line, "column": at.column}
        texts = {name: text for name, text in (("path", path), ("given", given)) if text is not None}
        return self.model_copy(update={**there, **texts})

    def error(self) -> Infeasible:
        """The error that it is when it ends a command."""
        kind = next(kind for kind in _kinds(Infeasible) if getattr(kind, "code", None) == self.code)
        return kind(path=self.path, given=self.given, need=self.need, fix=self.fix, at=self.at)

    def render(self) -> str:
        """As a person reads it."""
        return self.error().render()


def violated(kind: type[Infeasible], *, path: str = "", given: str = "", need: str = "", fix: str = "") -> Violation:
    """A violation of a kind; arguments as `Violation` has them."""
    return Violation(code=kind.code, title=kind.title, path=path, given=given, need=need, fix=fix)


def violation_of(error: Infeasible) -> Violation:
    """What a calculation has raised that has no other way to say that nothing meets its demand."""
    return violated(type(error), path=error.path, given=error.given, need=error.need, fix=error.fix).moved(error.at)


def raise_violations(violations: Iterable[Violation]) -> None:
    """Ends what can't go on with a plan that is not feasible.

    Raises:
        PenstockError: the violation, or all of them as `Faults`; none: nothing is raised.
    """
    raise_all(violation.error() for violation in violations)


def _kinds(base: type[Infeasible]) -> Iterator[type[Infeasible]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _kinds(kind)
