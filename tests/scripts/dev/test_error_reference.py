"""The page of all the error codes."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from penstock.scripts.dev.error_reference import cause, errors, rendered

PAGE = Path(__file__).resolve().parents[3] / "docs/errors.md"
KINDS = [kind for kinds in errors().values() for kind in kinds]


def test_no_code_stands_for_two_errors() -> None:
    assert [code for code, times in Counter(kind.code for kind in KINDS).items() if times > 1] == []


def test_every_code_is_a_word_and_three_digits() -> None:
    assert [kind.code for kind in KINDS if not re.fullmatch(r"[A-Z]{3,5}-[0-9]{3}", kind.code)] == []


def test_every_error_has_a_title_and_a_cause_in_one_sentence() -> None:
    lacking = [f"{kind.__module__}.{kind.__name__}" for kind in KINDS if not kind.title or not re.fullmatch(r"[^|]+\.", cause(kind))]
    assert lacking == [], "give each a title, and a docstring of one sentence that says the cause"


def test_the_committed_page_is_that_of_the_classes() -> None:
    assert PAGE.read_text() == rendered(), "out of date; write it again: python -m penstock.scripts.dev.error_reference > docs/errors.md"
