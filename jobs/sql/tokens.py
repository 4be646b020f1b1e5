"""Tokens of an SQL app with their positions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from penstock.jobs.errors import SqlRefused
from penstock.sizing.errors import Place

# Longer ones first. Characters between tokens match no group.
_TOKEN = re.compile(
    r"(?:\s+|--[^\n]*|/\*.*?\*/)"
    r"|(?P<string>'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\")"
    r"|(?P<quoted>`[^`\n]+`)"
    r"|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\w*)"
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<symbol><=>|<>|!=|<=|>=|==|->|\|\||::|.)",
    re.DOTALL,
)
_CLOSES = {")": "(", "]": "["}
# Apps have a page or ten, as modules do.
MAX_BYTES = 1_000_000


@dataclass(frozen=True)
class Token:
    """A word, a string literal, a quoted name, a number or a symbol.

    Args:
        kind: ``word``, ``string``, ``quoted``, ``number`` or ``symbol``.
        text: text in the file.
        start: index of its first character.
        depth: number of open brackets around it.
    """

    kind: str
    text: str
    start: int
    depth: int

    @property
    def end(self) -> int:
        """Index after its last character."""
        return self.start + len(self.text)


@dataclass(frozen=True)
class Fragment:
    """A fragment of the file, unchanged.

    Args:
        text: the fragment.
        line: its first line, from 1.
    """

    text: str
    line: int


@dataclass(frozen=True)
class Script:
    """Text of the whole file."""

    path: Path
    text: str

    def line(self, index: int) -> int:
        """Line of a character, from 1."""
        return self.text.count("\n", 0, index) + 1

    def refused(self, where: Token | Fragment | int, need: str, fix: str, *, given: str = "") -> SqlRefused:
        """The error for the text at a position."""
        if isinstance(where, Fragment):
            return SqlRefused(at=Place(file=str(self.path), line=where.line), given=given or short(where.text), need=need, fix=fix)
        index = where.start if isinstance(where, Token) else where
        column = index - (self.text.rfind("\n", 0, index) + 1) + 1
        place = Place(file=str(self.path), line=self.line(index), column=column)
        return SqlRefused(at=place, given=given or (short(where.text) if isinstance(where, Token) else ""), need=need, fix=fix)


def short(text: str) -> str:
    """A fragment on one line, truncated if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}..."


def tokens(script: Script) -> list[Token]:
    """All tokens of a file; those within brackets are one level deeper than the brackets.

    Raises:
        SqlRefused: SPEC-045 for an unterminated string, comment or bracket.
    """
    result: list[Token] = []
    opened: list[Token] = []
    for match in _TOKEN.finditer(script.text):
        if match.lastgroup is None:
            continue
        token = Token(match.lastgroup, match.group(), match.start(), len(opened))
        if token.text in _CLOSES:
            if not opened or opened[-1].text != _CLOSES[token.text]:
                raise script.refused(token, f"a {_CLOSES[token.text]} before it", "remove it, or open it")
            opened.pop()
            token = Token(token.kind, token.text, token.start, len(opened))
        result.append(token)
        if token.text in _CLOSES.values():
            opened.append(token)
        if token.kind == "symbol" and (token.text in ("'", '"', "`") or script.text.startswith("/*", token.start)):
            raise script.refused(token, "its other end", "close it", given=script.text[token.start : token.start + 2].strip())
    if opened:
        raise script.refused(opened[-1], "its other end", "close it")
    return result
