from __future__ import annotations

import re

from penstock.scripts.layout import ROOT
from penstock.scripts.security.rules import RULES
from tests.security.faults import MORE, NINE


def test_the_page_lists_each_rule() -> None:
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"^\| (PEN_\w+) \| (.+) \|$", page, flags=re.MULTILINE)) == RULES


def test_a_fault_is_planted_for_each_rule() -> None:
    assert {rule for fault in (*NINE, *MORE) for rule in fault.rules if rule.startswith("PEN_")} == set(RULES)
