"""Holds the plan of a spec against numbers."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from penstock.infra.environment_file import DEFAULT_ENVIRONMENT
from penstock.scripts.planning.planned_jobs import planned_job, where
from penstock.sizing.planned import Plan
from penstock.testing.differences import side_by_side
from penstock.testing.errors import WrongNumbers

# Dotted name, number expected, number planned.
_Row = tuple[str, object, object]


class AssertPlan(Protocol):
    """The type of the fixture ``assert_plan``."""

    def __call__(
        self, spec: str | Path, *, environment: str = DEFAULT_ENVIRONMENT, app_path: Sequence[str | Path] = (), **numbers: object
    ) -> None:
        """Fails if a plan has other numbers, or can't be met and no violations are expected.

        Args:
            spec: path of the spec, from pytest's root folder.
            environment: name or path of the environment.
            app_path: folders of the app, besides those of the spec and of the environment.
            numbers: parts of what ``penstock size SPEC -o json`` prints, such as ``totals={"executors": 5}``.

        Raises:
            AssertionError: both sides of what differs.
            PenstockError: TEST-003, or what is wrong in the spec.
        """


def assertion(root: Path) -> AssertPlan:
    """The assertion for the specs of a repository.

    Args:
        root: where their paths begin.
    """

    def assert_plan(
        spec: str | Path, *, environment: str = DEFAULT_ENVIRONMENT, app_path: Sequence[str | Path] = (), **numbers: object
    ) -> None:
        location = where(environment, partial=True)
        plan = planned_job(root / spec, location, [root / folder for folder in app_path]).plan
        hold(plan, numbers)

    return assert_plan


def hold(plan: Plan, numbers: Mapping[str, object]) -> None:
    """Holds a plan against numbers.

    Args:
        plan: the plan.
        numbers: parts of its JSON.

    Raises:
        AssertionError: they differ, or the plan is not feasible and no violations are expected.
        WrongNumbers: TEST-003.
    """
    document = plan.model_dump(mode="json", by_alias=True)
    rows = list(_rows(numbers, document, ""))
    if any(expected != planned for _, expected, planned in rows):
        lines = [(f"{name} = {expected!r}", f"{name} = {planned!r}") for name, expected, planned in rows]
        raise AssertionError("\n" + side_by_side(("expected", "planned"), lines))
    if not plan.feasible and "violations" not in numbers:
        raise AssertionError("\n".join(["the plan is not feasible:", *(violation.render() for violation in plan.violations)]))


def _rows(expected: Mapping[str, object], planned: Mapping[str, Any], prefix: str) -> Iterator[_Row]:
    for name, number in expected.items():
        if name not in planned:
            near = difflib.get_close_matches(name, planned, n=3) or list(planned)
            need = f"a name of penstock size -o json, such as {', '.join(near)}"
            raise WrongNumbers(path="assert_plan", given=f"{prefix}{name}", need=need, fix="correct the name")
        if isinstance(number, Mapping) and isinstance(planned[name], dict):
            yield from _rows(number, planned[name], f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", number, planned[name]
