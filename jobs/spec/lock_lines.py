"""The lines of a lock: pip's syntax of requirement files, which the locks of Python packages and of jars share.

Source: pip's documentation, "Requirements File Format" and "Secure installs".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from penstock.jobs.document import Path_
from penstock.jobs.spec.errors import LockLineRefused, LockUnread
from penstock.jobs.spec.reading import SpecFile
from penstock.sizing.errors import PenstockError, Place

MAX_BYTES = 5_000_000
_COMMENT = re.compile(r"(^|\s)#.*$")
_HASH = re.compile(r"\s--hash[= ](\S+)")
# Algorithm -> hexadecimal digits. pip accepts no others.
_DIGITS = {"sha256": 64, "sha384": 96, "sha512": 128}


@dataclass(frozen=True)
class LockLine:
    """A logical line: with its continuations, without comments.

    Args:
        text: the line without its hashes.
        hashes: ``algorithm:digest``, in the order of the file.
        at: place of its first line.
        faults: hashes that are none.
    """

    text: str
    hashes: tuple[str, ...]
    at: Place
    faults: tuple[PenstockError, ...] = field(default=())

    def refused(self, *, need: str, fix: str) -> PenstockError:
        """SPEC-061 for this line."""
        return LockLineRefused(given=self.text, need=need, fix=fix, at=self.at)


def lock_file(spec: SpecFile, name: str, place: Path_) -> tuple[Path, list[LockLine]]:
    """A lock that a spec names, and its lines.

    Args:
        spec: the spec; the name is relative to its folder.
        name: path in the spec.
        place: of the name in the spec.

    Raises:
        LockUnread: SPEC-060, with the spec's line.
    """
    file = spec.path.parent / name
    try:
        raw = file.read_bytes()
        if len(raw) > MAX_BYTES:
            raise ValueError(f"{len(raw):,} bytes, at most {MAX_BYTES:,}")
        lines = list(_lines(raw.decode("utf-8-sig"), str(file)))
    except (OSError, ValueError) as error:
        reason = (error.strerror or "") if isinstance(error, OSError) else "not UTF-8" if isinstance(error, UnicodeError) else str(error)
        fault = LockUnread(need=f"a lock, relative to the spec; {file}: {reason}", fix="create it, or correct the path")
        raise spec.document.locate(fault, place) from None
    if not lines:
        fault = LockUnread(need=f"at least one line in {file}", fix="lock a package, or remove the field")
        raise spec.document.locate(fault, place)
    return file, lines


def _lines(text: str, file: str) -> Iterator[LockLine]:
    parts: list[str] = []
    numbers: list[int] = []
    for number, raw in enumerate([*text.splitlines(), ""], start=1):
        line = _COMMENT.sub("", raw).rstrip()
        # A comment ends a line that goes on after it.
        parts.append(line.removesuffix("\\"))
        numbers.append(number)
        if line.endswith("\\"):
            continue
        if "".join(parts).strip():
            yield _line(parts, numbers, file)
        parts, numbers = [], []


def _line(parts: list[str], numbers: list[int], file: str) -> LockLine:
    hashes: list[str] = []
    faults: list[PenstockError] = []
    for part, number in zip(parts, numbers, strict=True):
        for given in _HASH.findall(f" {part}"):
            algorithm, _, digest = given.partition(":")
            if re.fullmatch(r"[0-9a-f]+", digest) and len(digest) == _DIGITS.get(algorithm):
                hashes.append(given)
            else:
                need = "sha256: and 64 lower-case hexadecimal digits (or sha384, sha512)"
                place = Place(file=file, line=number)
                faults.append(LockLineRefused(given=f"--hash={given}", need=need, fix="lock the package again", at=place))
    text = " ".join(_HASH.sub("", f" {part}").strip() for part in parts).strip()
    return LockLine(" ".join(text.split()), tuple(hashes), Place(file=file, line=numbers[0]), tuple(faults))
