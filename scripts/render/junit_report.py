"""A rehearsal as a JUnit report, which CI servers show.

Source: the JUnit XML format as Jenkins' plugin documents it: ``testsuite`` with ``testcase``, ``failure`` and ``skipped``.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from penstock.scripts.render.rehearsal_stages import Case, Outcome


def render(cases: Sequence[Case], name: str) -> bytes:
    """The report.

    Args:
        cases: one for each stage of each stack.
        name: of the environment.

    Returns:
        XML.
    """
    counts = {
        "tests": len(cases),
        "failures": sum(case.outcome is Outcome.FAILED for case in cases),
        "errors": 0,
        "skipped": sum(case.outcome is Outcome.LEFT_OUT for case in cases),
        "time": f"{sum(case.seconds for case in cases):.1f}",
    }
    suite = ElementTree.Element("testsuite", {"name": f"penstock rehearse {name}", **{key: str(value) for key, value in counts.items()}})
    for case in cases:
        element = ElementTree.SubElement(suite, "testcase", classname=case.stage.value, name=case.stack, time=f"{case.seconds:.1f}")
        if case.outcome is Outcome.FAILED:
            ElementTree.SubElement(element, "failure", message=case.message.partition("\n")[0]).text = case.message
        elif case.outcome is Outcome.LEFT_OUT:
            ElementTree.SubElement(element, "skipped")
    ElementTree.indent(suite)
    report: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return report
