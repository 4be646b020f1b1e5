"""Group keys of a table's copies: checkpoints are bound to them."""

from __future__ import annotations

from penstock.jobs.blocks.joins.group_keys import group_keys


def test_the_keys_are_those_that_checkpoints_have() -> None:
    # With other keys a job that resumes from its checkpoint would find empty copies.
    known = "00c4uMac 0078fPeG 02b8FxD6 0081wV1d 0028SyhC 001eYppI 0177gPAE 002eghmF 014a2xik 0188eC9i 0184kYH3 0150vuLQ 0054rI3q 01f6d4mU"
    assert group_keys(14) == known.split()


def test_each_of_many_copies_has_a_key_of_its_own() -> None:
    assert len(set(group_keys(300))) == 300
