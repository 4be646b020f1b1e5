from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.scripts.errors import MissingTool
from penstock.scripts.layout import ROOT
from penstock.scripts.provisioning import machine
from penstock.scripts.provisioning.finding import MISSING, OK, OPTIONAL, Finding


def _tool(folder: Path, name: str, says: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\necho '{says}'\n")
    (folder / name).chmod(0o755)


def _look(folder: Path, also_needed: tuple[str, ...] = ()) -> dict[str, Finding]:
    findings = machine.look({"PATH": str(folder), "HOME": str(folder)}, also_needed=also_needed)
    return {finding.name: finding for finding in findings}


def test_tools_that_are_missing_are_named_with_what_they_are_for_and_how_to_get_them(tmp_path: Path) -> None:
    findings = _look(tmp_path)
    for tool in machine.TOOLS:
        assert findings[tool.name].state == (MISSING if tool.needed else OPTIONAL), tool.name
        assert findings[tool.name].said == "not in PATH"
        assert findings[tool.name].fix == tool.fix
        assert findings[tool.name].purpose == tool.purpose
    assert findings["python"].state == OK


def test_a_tool_of_a_fit_version_is_ok_and_one_too_old_or_mute_is_not(tmp_path: Path) -> None:
    _tool(tmp_path, "terraform", "Terraform v1.11.4")
    _tool(tmp_path, "node", "v18.2.0")
    _tool(tmp_path, "mvn", "sorry")
    findings = _look(tmp_path)
    assert (findings["terraform"].state, findings["terraform"].said) == (OK, "1.11.4")
    assert (findings["node"].state, findings["node"].said) == (MISSING, "18.2.0, older than 20")
    assert (findings["mvn"].state, findings["mvn"].said) == (MISSING, "does not report its version: sorry")


def test_what_an_environment_needs_beyond_the_rest_is_missing_not_optional(tmp_path: Path) -> None:
    assert _look(tmp_path)["aws"].state == OPTIONAL
    assert _look(tmp_path, also_needed=("aws",))["aws"].state == MISSING


def test_the_least_versions_are_those_of_the_set_up() -> None:
    setup = (ROOT / "scripts/setup").read_text()
    for tool in machine.TOOLS:
        if tool.needed:
            (least,) = set(re.findall(rf"judge {tool.name} .* ([0-9.]+) \|\|", setup))
            assert least == ".".join(str(part) for part in tool.least), tool.name


def test_the_provider_is_the_one_that_the_bindings_are_pinned_to() -> None:
    assert machine.AWS_PROVIDER_VERSION in (ROOT / "docs/decisions/0003-cdktf.md").read_text()


def test_a_tool_that_something_needs_is_asked_for_by_name(tmp_path: Path) -> None:
    with pytest.raises(MissingTool) as raised:
        machine.require("aws", {"PATH": str(tmp_path)})
    assert raised.value.exit_code == 4
    _tool(tmp_path, "aws", "aws-cli/2.1")
    machine.require("aws", {"PATH": str(tmp_path)})
