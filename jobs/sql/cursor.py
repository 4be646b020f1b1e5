"""A way through the tokens of a statement."""

from __future__ import annotations

import re

from penstock.jobs.errors import SqlRefused
from penstock.jobs.sql.tokens import Fragment, Script, Token


class Cursor:
    """Where a statement is read.

    Args:
        script: the file.
        found: the statement's tokens; those of the same depth as the first are its own.
        behind: index of the character behind them, for what is missing there.
    """

    def __init__(self, script: Script, tokens: list[Token], behind: int | None = None) -> None:
        self.script = script
        self._tokens = tokens
        self._at = 0
        self._depth = min((token.depth for token in tokens), default=0)
        self._behind = tokens[-1].end - 1 if behind is None and tokens else behind or 0

    def refused(self, need: str, fix: str = "correct the statement") -> SqlRefused:
        """The error for what stands here."""
        return self.script.refused(self._tokens[self._at] if self.more else self._behind, need, fix, given="" if self.more else "its end")

    @property
    def more(self) -> bool:
        """Whether anything is left."""
        return self._at < len(self._tokens)

    def sees(self, *words: str) -> bool:
        """Whether these words come next, in capitals or not."""
        some = self._tokens[self._at : self._at + len(words)]
        return [token.text.upper() for token in some] == list(words) and all(token.kind in ("word", "symbol") for token in some)

    def accept(self, *words: str) -> bool:
        """Passes these words if they come next."""
        seen = self.sees(*words)
        self._at += len(words) if seen else 0
        return seen

    def expect(self, *words: str) -> None:
        """Passes these words. Raises SPEC-045 if something else comes."""
        if not self.accept(*words):
            raise self.refused(" ".join(words))

    def name(self) -> Fragment:
        """A name, or one in backticks. Raises SPEC-045 if something else comes."""
        if not self.more or self._tokens[self._at].kind not in ("word", "quoted"):
            raise self.refused("a name; quote one with a hyphen in backticks")
        token = self._next()
        return Fragment(token.text.strip("`"), self.script.line(token.start))

    def names(self) -> tuple[str, ...]:
        """Names with commas between them."""
        parts = [self.name().text]
        while self.accept(","):
            parts.append(self.name().text)
        return tuple(parts)

    def string(self) -> str:
        """A text in quotes. Raises SPEC-045 if something else comes."""
        if not self.more or self._tokens[self._at].kind != "string":
            raise self.refused("a quoted string, such as '10m'")
        return self._next().text[1:-1]

    def whole(self) -> int:
        """A whole number. Raises SPEC-045 if something else comes."""
        if not self.more or not re.fullmatch("[0-9]{1,9}", self._tokens[self._at].text):
            raise self.refused("an integer")
        return int(self._next().text)

    def brackets(self) -> Cursor:
        """What stands in the brackets that come next, which are passed. Raises SPEC-045 if none do."""
        if not self.sees("("):
            raise self.refused("an opening parenthesis")
        depth = self._next().depth
        begin = self._at
        while self._tokens[self._at].depth > depth:
            self._at += 1
        inside = Cursor(self.script, self._tokens[begin : self._at], self._tokens[self._at].start)
        self._at += 1
        if not inside.more:
            raise inside.refused("something between the parentheses")
        return inside

    def until(self, *stops: tuple[str, ...]) -> Fragment:
        """What stands before one of these words, outside of brackets, or before the end. Raises SPEC-045 if that is nothing."""
        begin = self._at
        while self.more and not (self._tokens[self._at].depth == self._depth and any(self.sees(*stop) for stop in stops)):
            self._at += 1
        if self._at == begin:
            raise self.refused("an expression")
        first, last = self._tokens[begin], self._tokens[self._at - 1]
        return Fragment(self.script.text[first.start : last.end], self.script.line(first.start))

    def rest(self) -> Fragment:
        """All that is left."""
        return self.until()

    def by_comma(self) -> list[Cursor]:
        """What stands between commas, all that is left."""
        cursors: list[Cursor] = []
        some: list[Token] = []
        for token in self._tokens[self._at :]:
            if token.text == "," and token.depth == self._depth:
                cursors.append(self._part(some, token.start))
                some = []
            else:
                some.append(token)
        cursors.append(self._part(some, self._behind))
        self._at = len(self._tokens)
        return cursors

    def _part(self, some: list[Token], behind: int) -> Cursor:
        part = Cursor(self.script, some, behind)
        if not some:
            raise part.refused("an expression between the commas")
        return part

    def split(self, *stops: tuple[str, ...]) -> Cursor:
        """A cursor for what `until` would give."""
        begin = self._at
        self.until(*stops)
        return Cursor(self.script, self._tokens[begin : self._at], self._tokens[self._at].start if self.more else self._behind)

    def left(self) -> list[Token]:
        """The tokens that are left."""
        return self._tokens[self._at :]

    def end(self) -> None:
        """Raises SPEC-045 if anything is left."""
        if self.more:
            raise self.refused("the end of the statement", "end it with ; or remove this")

    def _next(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token
