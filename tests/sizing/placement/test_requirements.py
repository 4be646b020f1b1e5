"""Sets of label values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sizing.placement.requirements import ABSENT, ANY, Allowed, Requirements, allowed, one_of, requirements

VALUES = ["1", "2", "5", "9", "a", "-3"]


@st.composite
def sets(draw: st.DrawFn) -> Allowed:
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"]))
    if operator in ("In", "NotIn"):
        return allowed(operator, draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=4)))
    return allowed(operator, [str(draw(st.integers(0, 9)))] if operator in ("Gt", "Lt", "Gte", "Lte") else [])


@pytest.mark.parametrize(
    ("operator", "values", "yes", "no"),
    [
        ("In", ["a", "b"], "a", "c"),
        ("NotIn", ["a", "b"], "c", "a"),
        ("Gt", ["4"], "5", "4"),
        ("Lt", ["4"], "3", "4"),
        ("Gte", ["4"], "4", "3"),
        ("Lte", ["4"], "4", "5"),
    ],
)
def test_an_operator_allows_what_its_name_says(operator: str, values: list[str], yes: str, no: str) -> None:
    assert allowed(operator, values).has(yes)
    assert not allowed(operator, values).has(no)


def test_exists_allows_anything_and_does_not_exist_nothing() -> None:
    assert allowed("Exists", []) == ANY
    assert allowed("DoesNotExist", []) == ABSENT
    assert ANY.has("")
    assert not ABSENT.has("")


@pytest.mark.parametrize("value", ["a", "", "4.5", "99999999999999999999", "5 "])
def test_what_is_no_integer_of_64_bits_is_never_within_bounds(value: str) -> None:
    assert not allowed("Gt", ["1"]).has(value)


def test_nothing_is_greater_than_the_largest_integer() -> None:
    assert allowed("Gt", [str(2**63 - 1)]) == ABSENT


def test_bounds_that_exclude_each_other_leave_nothing() -> None:
    assert not allowed("Gt", ["5"]).meets(allowed("Lt", ["5"]))
    assert allowed("Gt", ["5"]).intersection(allowed("Lt", ["5"])) == ABSENT


def test_the_larger_of_two_min_values_holds() -> None:
    merged = requirements([("l", allowed("In", ["a", "b"], 1)), ("l", allowed("Exists", [], 2))])
    assert merged.get("l").min_values == 2


@given(sets(), sets(), st.sampled_from(VALUES))
def test_a_value_is_in_the_intersection_if_both_have_it(one: Allowed, other: Allowed, value: str) -> None:
    assert one.intersection(other).has(value) == (one.has(value) and other.has(value))


@given(sets(), sets())
def test_two_sets_meet_both_ways_or_not_at_all(one: Allowed, other: Allowed) -> None:
    assert one.meets(other) == other.meets(one)


@given(sets(), sets(), sets())
def test_the_order_of_intersections_does_not_matter(one: Allowed, other: Allowed, third: Allowed) -> None:
    left, right = one.intersection(other).intersection(third), one.intersection(other.intersection(third))
    assert [left.has(value) for value in VALUES] == [right.has(value) for value in VALUES]


def test_an_undefined_custom_label_is_denied_unless_its_absence_is_required() -> None:
    nothing = requirements([])
    assert nothing.conflict(requirements([("team", one_of("a"))])) == "team"
    assert nothing.conflict(requirements([("team", ANY)])) == "team"
    assert nothing.conflict(requirements([("team", allowed("NotIn", ["a"]))])) is None
    assert nothing.conflict(requirements([("team", ABSENT)])) is None


def test_a_well_known_label_may_be_asked_of_a_new_node_but_not_of_one_that_lacks_it() -> None:
    nothing, arm = requirements([]), requirements([("kubernetes.io/arch", one_of(["arm64"]))])
    assert nothing.conflict(arm) is None
    assert nothing.conflict(arm, undefined_well_known=False) == "kubernetes.io/arch"


def test_two_that_say_what_must_not_be_never_conflict() -> None:
    mine = requirements([("team", ABSENT)])
    assert mine.conflict(requirements([("team", ABSENT)])) is None
    assert mine.conflict(requirements([("team", allowed("NotIn", ["a"]))])) is None
    assert mine.conflict(requirements([("team", ANY)])) == "team"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
        ("beta.kubernetes.io/os", "kubernetes.io/os"),
        ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
        ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
        ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ],
)
def test_old_names_of_labels_are_the_new_ones(old: str, new: str) -> None:
    assert requirements([(old, one_of("a")), (new, ANY)]) is requirements([(new, one_of("a"))])


def test_the_same_contents_are_the_same_object() -> None:
    assert Requirements({"a": ANY, "b": ABSENT}) is Requirements({"b": ABSENT, "a": ANY})


@pytest.mark.parametrize(
    ("values", "text"),
    [(one_of("ab"), "a, b"), (allowed("NotIn", ["a"]), "not a"), (ANY, "any value"), (ABSENT, "no value"), (allowed("Gt", ["4"]), ">= 5")],
)
def test_a_set_is_shown_in_words(values: Allowed, text: str) -> None:
    assert str(values) == text
