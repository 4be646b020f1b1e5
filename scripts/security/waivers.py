"""Waivers: accepted findings, each with its reason and expiry date."""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from penstock.scripts.security.errors import BadWaivers, ExpiredWaiver, UnusedWaiver, WaiverTwice
from penstock.scripts.security.finding import Finding
from penstock.sizing.errors import PenstockError, raise_all


class Waiver(BaseModel):
    """An accepted finding.

    Args:
        rule: the scanner's id.
        path: the failing object: ``stack/address`` of a resource, ``stack/kind/namespace/name`` of a manifest, or a file. A trailing
            ``*`` matches any suffix.
        digests: digests of the objects that it was given for, each of 16 hexadecimal digits.
        reason: why it is accepted.
        expires: last day on which the waiver is valid.
        needs: an object without which no finding is expected, so that the waiver is not unused where it is not scanned; None: always.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    rule: Annotated[str, Field(pattern=r"^(CKV2?|PEN)_[A-Z0-9]+_[0-9]+$")]
    path: Annotated[str, Field(min_length=3)]
    # TOML has arrays only.
    digests: Annotated[tuple[Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")], ...], Field(strict=False, min_length=1)]
    reason: Annotated[str, Field(min_length=20)]
    expires: datetime.date
    needs: Annotated[str, Field(min_length=3)] | None = None

    def covers(self, finding: Finding) -> bool:
        """Whether the waiver accepts a finding: it names the rule and the object, which is as it was."""
        return self.names(finding) and finding.digest in self.digests

    def names(self, finding: Finding) -> bool:
        """Whether the waiver names a finding's rule and object."""
        if self.rule != finding.rule:
            return False
        return finding.path.startswith(self.path[:-1]) if self.path.endswith("*") else finding.path == self.path


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    waiver: list[Waiver] = []


def read(file: Path) -> tuple[Waiver, ...]:
    """Read the waivers of a file.

    Raises:
        BadWaivers: SEC-006, one per error.
        WaiverTwice: SEC-005.
    """
    try:
        waivers = _File.model_validate(tomllib.loads(file.read_text(encoding="utf-8"))).waiver
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadWaivers(path=str(file), given=str(error), need="a file of [[waiver]] tables", fix="correct it") from None
    except ValidationError as invalid:
        raise_all(_bad(file, detail["loc"], str(detail["input"]), detail["msg"]) for detail in invalid.errors(include_url=False))
        raise
    raise_all(_twice(file, waivers))
    return tuple(waivers)


def faults(waivers: Sequence[Waiver], findings: Sequence[Finding], scanned: Sequence[str], today: datetime.date) -> list[PenstockError]:
    """Check waivers against a scan.

    Args:
        waivers: all waivers.
        findings: findings of the scan.
        scanned: scanned parts, and the objects that a waiver may need; waivers of other parts do not count as unused.
        today: the current date.
    """
    return [fault for waiver in waivers for fault in _faults_of(waiver, findings, scanned, today)]


def _faults_of(waiver: Waiver, findings: Sequence[Finding], scanned: Sequence[str], today: datetime.date) -> Iterator[PenstockError]:
    what = f"{waiver.rule} {waiver.path}"
    if waiver.expires < today:
        fix = "fix the finding, or review the reason and set a new date"
        yield ExpiredWaiver(path=what, given=str(waiver.expires), need=f"an expiry date of {today} or later", fix=fix)
    expected = waiver.path.split("/")[0] in scanned and (waiver.needs is None or waiver.needs in scanned)
    if expected and not any(waiver.names(finding) for finding in findings):
        yield UnusedWaiver(path=what, need="a matching finding", fix="remove the waiver")


def _bad(file: Path, place: tuple[int | str, ...], given: str, need: str) -> BadWaivers:
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")
    fix = "rule, path, digests, a reason of at least 20 characters, expires = YYYY-MM-DD"
    return BadWaivers(path=f"{file}: {where}", given=given[:80], need=need, fix=fix)


def _twice(file: Path, waivers: Sequence[Waiver]) -> Iterator[WaiverTwice]:
    keys = [(waiver.rule, waiver.path) for waiver in waivers]
    for rule, path in sorted({key for key in keys if keys.count(key) > 1}):
        yield WaiverTwice(path=f"{file}: {rule} {path}", need="a single waiver", fix="remove the other one")
