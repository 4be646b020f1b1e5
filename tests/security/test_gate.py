from __future__ import annotations

import datetime

from penstock.scripts.security.checkov import Scan
from penstock.scripts.security.errors import NotScanned, UnusedWaiver, UnwaivedFinding
from penstock.scripts.security.finding import Finding
from penstock.scripts.security.gate import judge
from penstock.scripts.security.waivers import Waiver

TODAY = datetime.date(2026, 11, 21)
OPEN = Finding(rule="CKV_AWS_24", path="network/aws_security_group.open", says="No SSH from everywhere")
WAIVER = Waiver(rule=OPEN.rule, path=OPEN.path, reason="A bastion that the auditors know of.", expires=TODAY)


def _scans(*findings: Finding, resources: int = 3) -> dict[str, Scan]:
    nothing = Scan((), frozenset(), 0)
    return {"plans": Scan(findings, frozenset(), resources), "manifests": nothing, "image": nothing}


def test_a_finding_fails_the_gate() -> None:
    scanned = judge(_scans(OPEN), {"network": 3}, [], TODAY)
    assert [(type(fault), fault.given, fault.path) for fault in scanned.faults] == [(UnwaivedFinding, OPEN.rule, OPEN.path)]
    assert scanned.findings == (OPEN,)


def test_a_waived_finding_passes_and_is_reported() -> None:
    scanned = judge(_scans(OPEN), {"network": 3}, [WAIVER], TODAY)
    assert scanned.faults == ()
    assert scanned.waived == ((OPEN, WAIVER),)


def test_a_waiver_that_is_not_needed_fails_the_gate() -> None:
    assert [type(fault) for fault in judge(_scans(), {"network": 3}, [WAIVER], TODAY).faults] == [UnusedWaiver]


def test_a_scan_that_saw_less_than_was_synthesized_fails_the_gate() -> None:
    assert [type(fault) for fault in judge(_scans(resources=2), {"network": 3}, [], TODAY).faults] == [NotScanned]
    assert [type(fault) for fault in judge(_scans(resources=0), {"network": 3}, [], TODAY).faults] == [NotScanned]
