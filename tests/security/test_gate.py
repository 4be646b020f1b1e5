from __future__ import annotations

import datetime

from penstock.scripts.security.errors import ChangedSinceWaived, NotScanned, UnusedWaiver, UnwaivedFinding
from penstock.scripts.security.finding import Finding
from penstock.scripts.security.gate import Examined, judge
from penstock.scripts.security.waivers import Waiver

TODAY = datetime.date(2026, 11, 21)
OPEN = Finding(rule="CKV_AWS_24", path="network/aws_security_group.open", says="No SSH from everywhere", digest="0123456789abcdef")
WAIVER = Waiver(rule=OPEN.rule, path=OPEN.path, digests=(OPEN.digest,), reason="A bastion that the auditors know of.", expires=TODAY)


def _examined(*findings: Finding, seen: int = 3) -> Examined:
    return Examined(findings, (), seen, 3)


def test_a_finding_fails_the_gate() -> None:
    scanned = judge(_examined(OPEN), {"network": 3}, [], TODAY)
    assert [(type(fault), fault.given, fault.path) for fault in scanned.faults] == [(UnwaivedFinding, OPEN.rule, OPEN.path)]
    assert scanned.findings == (OPEN,)


def test_a_waived_finding_passes_and_is_reported() -> None:
    scanned = judge(_examined(OPEN), {"network": 3}, [WAIVER], TODAY)
    assert scanned.faults == ()
    assert scanned.waived == ((OPEN, WAIVER),)


def test_a_waiver_that_is_not_needed_fails_the_gate() -> None:
    assert [type(fault) for fault in judge(_examined(), {"network": 3}, [WAIVER], TODAY).faults] == [UnusedWaiver]


def test_a_scan_that_saw_less_than_was_synthesized_fails_the_gate() -> None:
    assert [type(fault) for fault in judge(_examined(seen=2), {"network": 3}, [], TODAY).faults] == [NotScanned]
    assert [type(fault) for fault in judge(_examined(seen=0), {"network": 3}, [], TODAY).faults] == [NotScanned]


def test_a_changed_object_needs_a_new_decision_and_gets_its_new_digest() -> None:
    changed = OPEN.model_copy(update={"digest": "fedcba9876543210"})
    (fault,) = judge(_examined(changed), {"network": 3}, [WAIVER], TODAY).faults
    assert type(fault) is ChangedSinceWaived
    assert fault.render().splitlines() == [
        "error[SEC-008]: waived object changed",
        "  at   network/aws_security_group.open = CKV_AWS_24, digest fedcba9876543210",
        "  need the object that CKV_AWS_24 was waived for: No SSH from everywhere",
        '  fix  fix it, or review the object as it is now and add "fedcba9876543210" to the waiver\'s digests',
    ]


def test_an_object_is_accepted_only_for_the_rule_that_is_waived() -> None:
    other = OPEN.model_copy(update={"rule": "PEN_POLICY_2"})
    (unused, fault) = sorted(judge(_examined(other), {"network": 3}, [WAIVER], TODAY).faults, key=lambda one: one.code, reverse=True)
    assert (type(unused), type(fault)) == (UnusedWaiver, UnwaivedFinding)
    assert 'digests = ["0123456789abcdef"]' in str(fault.fix)
