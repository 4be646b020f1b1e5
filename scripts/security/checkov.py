"""Run checkov in its own environment, offline."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from penstock.scripts.installation.tool_environment import Progress, ToolEnvironment
from penstock.scripts.process.supervised import SupervisedProcess
from penstock.scripts.security.errors import ScannerFailed
from penstock.scripts.security.finding import Finding
from penstock.scripts.security.parts import DOCKERFILE, KUBERNETES, TERRAFORM, Part

# A few hundred resources take some seconds; the first run on a machine compiles checkov.
SCAN_LIMIT_S = 600
_POLL_S = 0.1
# Scanned files stay on this machine, and no policy metadata is downloaded.
_OFFLINE = {"BC_SKIP_MAPPING": "TRUE", "CKV_IGNORE_HIDDEN_DIRECTORIES": "false", "LOG_LEVEL": "ERROR"}
# Variables of a user that would change what checkov does, such as CKV_SKIP_CHECK, and Python's, of which one would make it compile itself
# in every run.
_NOT_PASSED_ON = re.compile(r"^(CKV|CHECKOV|BC|PRISMA|EVAL|PYTHON|VIRTUAL_ENV|EXTERNAL_MODULES|DOWNLOAD_EXTERNAL|LOG_LEVEL|GIT|GITHUB)")
_FILE_NAMES = {TERRAFORM: "{name}.json", KUBERNETES: "{name}.yaml", DOCKERFILE: "{name}/Dockerfile"}


class Scan(NamedTuple):
    """Result of a scan.

    Args:
        findings: failed rules; their paths begin with the part's name.
        resource_count: number of resources parsed, including those that no rule applies to.
    """

    findings: tuple[Finding, ...]
    resource_count: int


def scan(parts: Sequence[Part], folder: Path, progress: Progress = lambda said: None) -> Scan:
    """Scan parts, in one process: starting it takes as long as scanning a hundred resources.

    Args:
        parts: the parts; those of AWS stacks have their plans.
        folder: working folder; created.
        progress: called with the current step.

    Raises:
        PenstockError: TOOL-001, TOOL-024, SEC-007.
    """
    checkov = ToolEnvironment("checkov").ensure(progress) / "checkov"
    files = folder / "files"
    for part in parts:
        file = files / part.framework / _FILE_NAMES[part.framework].format(name=part.name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(part.text, encoding="utf-8")
    progress("scanning with checkov")
    frameworks = sorted({part.framework for part in parts})
    command = [str(checkov), "-d", str(files), "--framework", *frameworks, "-o", "json", "--output-file-path", str(folder / "report")]
    log = folder / "checkov.log"
    _run([*command, "--skip-download", "--compact", "--soft-fail"], folder, log)
    report = folder / "report" / "results_json.json"
    if not report.is_file():
        raise ScannerFailed(path="checkov", given=f"no report; check {log}", need="a report", fix="retry")
    document = json.loads(report.read_text(encoding="utf-8"))
    reports: list[dict[str, Any]] = document if isinstance(document, list) else [document]
    return _read([one for one in reports if "results" in one])


def _run(command: Sequence[str], folder: Path, log: Path) -> None:
    env = {name: value for name, value in os.environ.items() if not _NOT_PASSED_ON.match(name)}
    # checkov reads a .checkov.yaml of the working folder and of the home folder, which could skip rules.
    env.update(_OFFLINE, HOME=str(folder))
    until_s = time.monotonic() + SCAN_LIMIT_S
    with SupervisedProcess(command, env=env, log=log, cwd=folder, grace_s=5) as supervised:
        while supervised.alive() and time.monotonic() < until_s:
            time.sleep(_POLL_S)
    if supervised.returncode != 0:
        given = f"code {supervised.returncode}; the end of {log}:\n{supervised.tail(8)}"
        raise ScannerFailed(path="checkov", given=given, need=f"completion within {SCAN_LIMIT_S} s", fix="see its log, and retry")


def _read(reports: Sequence[dict[str, Any]]) -> Scan:
    # A rule that is skipped was not checked: whatever skipped it, the gate has not accepted it.
    failed = [check for report in reports for key in ("failed_checks", "skipped_checks") for check in report["results"].get(key, [])]
    # checkov may report a rule twice, for the resource itself and for a connected one.
    findings = {Finding(rule=check["check_id"], path=_path(check), says=check["check_name"]) for check in failed}
    count = sum(report["summary"]["resource_count"] for report in reports)
    return Scan(tuple(sorted(findings, key=lambda finding: (finding.path, finding.rule))), count)


def _path(check: dict[str, Any]) -> str:
    file = Path(check["file_path"])
    if file.name == "Dockerfile":
        return f"{file.parent.name}/{check['resource'].rpartition('Dockerfile.')[2]}".rstrip("/.")
    return f"{file.stem}/{check['resource']}".rstrip("/.")
