"""Unmet requirements of a plan, as values and as errors."""

from __future__ import annotations

import pytest

from penstock.sizing.errors import Faults, HeapTooSmall, Infeasible, Place, PodNotMet
from penstock.sizing.violation import Violation, raise_violations, violated, violation_of

TEXTS = {"path": "spec.executor.memory", "given": "400m", "need": "450 MiB", "fix": "memory: 900m"}
FOUND = violated(HeapTooSmall, **TEXTS).moved(Place(file="a.yaml", line=7, column=5))


def test_a_violation_is_its_error_and_the_error_is_the_violation() -> None:
    error = FOUND.error()
    assert type(error) is HeapTooSmall
    assert error.as_json() == FOUND.model_dump(mode="json")
    assert violation_of(error) == FOUND
    assert FOUND.render() == error.render()


def test_its_json_has_the_fields_of_an_errors_json_in_their_order() -> None:
    assert list(FOUND.model_dump()) == list(FOUND.error().as_json())
    assert Violation.model_validate_json(FOUND.model_dump_json()) == FOUND


def test_one_that_stands_in_no_document_has_no_place() -> None:
    assert violated(HeapTooSmall).at is None
    assert FOUND.moved(path="executor") == FOUND.model_copy(update={"path": "executor"})


def test_violations_are_raised_together_and_none_raises_nothing() -> None:
    raise_violations([])
    with pytest.raises(HeapTooSmall):
        raise_violations([FOUND])
    with pytest.raises(Faults) as raised:
        raise_violations([FOUND, violated(PodNotMet)])
    assert all(isinstance(error, Infeasible) for error in raised.value.errors)
