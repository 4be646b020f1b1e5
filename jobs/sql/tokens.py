"""Tokens of an SQL app with their positions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from penstock.jobs.sql.errors import SqlRefused
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
    """A fragment of the text, unchanged.

    Args:
        text: the fragment.
        line: its first line, from 1.
        column: its first column, from 1.
    """

    text: str
    line: int
    column: int = 1


class SqlPlace(Place):
    """A position in SQL, which is printed with its column: a statement may be one long line."""

    def __str__(self) -> str:
        """As ``app.sql:3:14``."""
        return super().__str__() if self.column is None else f"{super().__str__()}:{self.column}"


@dataclass(frozen=True)
class Script:
    """A text of statements.

    Args:
        path: the file that has it.
        text: the text.
        line: of the text's first character in the file, from 1.
        column: likewise.
        verbatim: whether the file has the text as it is, so that a place in the text is a place in the file. Otherwise the text was made
            at this line by a program.
    """

    path: Path
    text: str
    line: int = 1
    column: int = 1
    verbatim: bool = True

    def line_of(self, index: int) -> int:
        """Line of a character in the text, from 1."""
        return self.text.count("\n", 0, index) + 1

    def column_of(self, index: int) -> int:
        """Column of a character in the text, from 1."""
        return index - self.text.rfind("\n", 0, index)

    def fragment(self, start: int, end: int) -> Fragment:
        """The characters from one index up to another."""
        return Fragment(self.text[start:end], self.line_of(start), self.column_of(start))

    def refused(self, where: Token | Fragment | int, need: str, fix: str, *, given: str = "") -> SqlRefused:
        """The error for the text at a position."""
        if isinstance(where, Fragment):
            line, column = where.line, where.column
        else:
            index = where.start if isinstance(where, Token) else where
            line, column = self.line_of(index), self.column_of(index)
        given = given or ("" if isinstance(where, int) else short(where.text))
        if not self.verbatim:
            return SqlRefused(at=self.place(), given=given, need=f"line {line}, column {column} of the SQL: {need}", fix=fix)
        return SqlRefused(at=self.place(line, column), given=given, need=need, fix=fix)

    def place(self, line: int = 1, column: int | None = None) -> Place:
        """A place in the file, of a line and a column of the text."""
        shifted = column + self.column - 1 if column is not None and line == 1 else column
        return SqlPlace(file=str(self.path), line=line + self.line - 1, column=shifted)


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
