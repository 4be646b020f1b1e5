"""Cursor over the tokens of a statement."""

from __future__ import annotations

import re

from penstock.jobs.sql.errors import SqlRefused
from penstock.jobs.sql.tokens import Fragment, Script, Token


class Cursor:
    """Position in a statement.

    Args:
        script: the file.
        tokens: the statement's tokens; those at the depth of the first one are its own.
        behind: index of the character after them, for errors about missing tokens.
    """

    def __init__(self, script: Script, tokens: list[Token], behind: int | None = None) -> None:
        self.script = script
        self._tokens = tokens
        self._at = 0
        self._depth = min((token.depth for token in tokens), default=0)
        self._behind = tokens[-1].end - 1 if behind is None and tokens else behind or 0

    def refused(self, need: str, fix: str = "correct the statement") -> SqlRefused:
        """The error for the current token."""
        return self.script.refused(self._tokens[self._at] if self.more else self._behind, need, fix, given="" if self.more else "its end")

    def here(self, text: str) -> Fragment:
        """A fragment at the next token, for errors about what begins there.

        Args:
            text: what errors show.
        """
        at = self._tokens[self._at].start if self.more else self._behind
        return Fragment(text, self.script.line_of(at), self.script.column_of(at))

    @property
    def more(self) -> bool:
        """Whether tokens remain."""
        return self._at < len(self._tokens)

    def sees(self, *words: str) -> bool:
        """Whether the next tokens are these words, ignoring case."""
        some = self._tokens[self._at : self._at + len(words)]
        return [token.text.upper() for token in some] == list(words) and all(token.kind in ("word", "symbol") for token in some)

    def accept(self, *words: str) -> bool:
        """Consumes these words if they are next."""
        seen = self.sees(*words)
        self._at += len(words) if seen else 0
        return seen

    def expect(self, *words: str) -> None:
        """Consumes these words. Raises SPEC-045 if they are not next."""
        if not self.accept(*words):
            raise self.refused(" ".join(words))

    def name(self) -> Fragment:
        """Consumes a name, plain or in backticks. Raises SPEC-045 if none is next."""
        if not self.more or self._tokens[self._at].kind not in ("word", "quoted"):
            raise self.refused("a name; quote one with a hyphen in backticks")
        token = self._next()
        return Fragment(token.text.strip("`"), self.script.line_of(token.start), self.script.column_of(token.start))

    def names(self) -> tuple[str, ...]:
        """Consumes names separated by commas."""
        parts = [self.name().text]
        while self.accept(","):
            parts.append(self.name().text)
        return tuple(parts)

    def string(self) -> str:
        """Consumes a string literal. Raises SPEC-045 if none is next."""
        return self.quoted("such as '10m'").text

    def quoted(self, example: str) -> Fragment:
        """Consumes a string literal, as a fragment without its quotes. Raises SPEC-045 if none is next.

        Args:
            example: what errors show.
        """
        if not self.more or self._tokens[self._at].kind != "string":
            raise self.refused(f"a quoted string, {example}")
        token = self._next()
        return Fragment(token.text[1:-1], self.script.line_of(token.start), self.script.column_of(token.start))

    def whole(self) -> int:
        """Consumes an integer. Raises SPEC-045 if none is next."""
        if not self.more or not re.fullmatch("[0-9]{1,9}", self._tokens[self._at].text):
            raise self.refused("an integer")
        return int(self._next().text)

    def brackets(self) -> Cursor:
        """Consumes brackets and returns their content. Raises SPEC-045 if none are next."""
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

    def call(self) -> tuple[Fragment, Fragment]:
        """Consumes a function's name with its arguments in parentheses, and returns the name and the whole. Raises SPEC-045."""
        start = self._tokens[self._at].start if self.more else 0
        name = self.name()
        if not self.sees("("):
            raise self.refused("an opening parenthesis")
        depth = self._next().depth
        while self._tokens[self._at].depth > depth:
            self._at += 1
        return name, self.script.fragment(start, self._next().end)

    def until(self, *stops: tuple[str, ...]) -> Fragment:
        """Consumes the tokens up to one of these words outside of brackets, or to the end. Raises SPEC-045 if there are none."""
        begin = self._at
        while self.more and not (self._tokens[self._at].depth == self._depth and any(self.sees(*stop) for stop in stops)):
            self._at += 1
        if self._at == begin:
            raise self.refused("an expression")
        first, last = self._tokens[begin], self._tokens[self._at - 1]
        return self.script.fragment(first.start, last.end)

    def rest(self) -> Fragment:
        """Consumes all remaining tokens."""
        return self.until()

    def by_comma(self) -> list[Cursor]:
        """Consumes all remaining tokens, split at commas."""
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
        """A cursor over the tokens of `until`."""
        begin = self._at
        self.until(*stops)
        return Cursor(self.script, self._tokens[begin : self._at], self._tokens[self._at].start if self.more else self._behind)

    def left(self) -> list[Token]:
        """The remaining tokens."""
        return self._tokens[self._at :]

    def end(self) -> None:
        """Raises SPEC-045 if tokens remain."""
        if self.more:
            raise self.refused("the end of the statement", "end it with ; or remove this")

    def _next(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token
