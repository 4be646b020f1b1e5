"""Run checkov in its own environment, offline."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from penstock.scripts.installation.tool_environment import Progress, ToolEnvironment
from penstock.scripts.process.supervised import SupervisedProcess
from penstock.scripts.security.errors import ScannerFailed
from penstock.scripts.security.finding import Finding

# A few hundred resources take half a minute.
SCAN_LIMIT_S = 600
_POLL_S = 0.1
# Scanned files stay on this machine, and no policy metadata is downloaded.
_OFFLINE = {"BC_SKIP_MAPPING": "TRUE", "CKV_IGNORE_HIDDEN_DIRECTORIES": "false", "LOG_LEVEL": "ERROR"}


class Scan(NamedTuple):
    """Result of a scan of one framework.

    Args:
        findings: failed rules; their paths begin with the scanned file's name without its extension.
        resources: paths, of the same form, that at least one rule has checked.
        resource_count: number of resources parsed, including those that no rule applies to.
    """

    findings: tuple[Finding, ...]
    resources: frozenset[str]
    resource_count: int


def scan(folder: Path, frameworks: Sequence[str], progress: Progress = lambda said: None) -> Scan:
    """Scan all files of a folder.

    Args:
        folder: folder that contains only the files to scan.
        frameworks: checkov's names, such as ``terraform_plan``.
        progress: called with the current step.

    Raises:
        PenstockError: TOOL-001, TOOL-024, SEC-007.
    """
    checkov = ToolEnvironment("checkov").ensure(progress) / "checkov"
    progress("scanning with checkov: " + " and ".join(frameworks))
    out = folder.parent / f"{folder.name}-report"
    command = [str(checkov), "-d", str(folder), "--framework", *frameworks, "-o", "json", "--output-file-path", str(out)]
    _run([*command, "--skip-download", "--compact", "--soft-fail"], folder.parent / "checkov.log")
    report = out / "results_json.json"
    if not report.is_file():
        raise ScannerFailed(path="checkov", given=f"no report; check {folder.parent / 'checkov.log'}", need="a report", fix="retry")
    document = json.loads(report.read_text(encoding="utf-8"))
    parts: list[dict[str, Any]] = document if isinstance(document, list) else [document]
    return _read([part for part in parts if "results" in part])


def _run(command: Sequence[str], log: Path) -> None:
    log.unlink(missing_ok=True)
    env = {**{name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}, **_OFFLINE}
    until_s = time.monotonic() + SCAN_LIMIT_S
    with SupervisedProcess(command, env=env, log=log, grace_s=5) as supervised:
        while supervised.alive() and time.monotonic() < until_s:
            time.sleep(_POLL_S)
    if supervised.returncode != 0:
        given = f"code {supervised.returncode}; the end of {log}:\n{supervised.tail(8)}"
        raise ScannerFailed(path="checkov", given=given, need=f"completion within {SCAN_LIMIT_S} s", fix="see its log, and retry")


def _read(parts: Sequence[dict[str, Any]]) -> Scan:
    findings: list[Finding] = []
    resources: set[str] = set()
    for part in parts:
        for outcome in ("passed_checks", "failed_checks"):
            for check in part["results"].get(outcome, []):
                path = _path(check)
                resources.add(path)
                if outcome == "failed_checks":
                    findings.append(Finding(rule=check["check_id"], path=path, says=check["check_name"]))
    # checkov may report a rule twice, for the resource itself and for a connected one.
    count = sum(part["summary"]["resource_count"] for part in parts)
    return Scan(tuple(sorted(set(findings), key=lambda finding: (finding.path, finding.rule))), frozenset(resources), count)


def _path(check: dict[str, Any]) -> str:
    file = Path(check["file_path"]).name
    stem = file if file == "Dockerfile" else file.split(".", maxsplit=1)[0]
    return f"{stem}/{check['resource']}".rstrip("/.")
